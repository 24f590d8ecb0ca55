// A name taken from an untrusted file, fit to be shown: quoted, control and non-ASCII bytes escaped, cut when
// long.
#pragma once

#include <string>
#include <string_view>

namespace assay::modelfile_internal {

std::string show_name(std::string_view name);

}  // namespace assay::modelfile_internal
