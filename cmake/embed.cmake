# embed_text(<target> <file> <function>): compiles a text file of data/ into <target> as
#   std::string_view <function>();   in namespace assay
# so that the binary works wherever it is copied. Long files are cut into pieces: compilers limit one literal.
function(embed_text target file function)
  set(output ${CMAKE_BINARY_DIR}/generated/${function}.cpp)
  file(READ ${CMAKE_SOURCE_DIR}/${file} content)
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${file})
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "// Generated from @file@ by cmake/embed.cmake.
#include <string_view>

namespace assay {

std::string_view @function@();

std::string_view @function@() { return R\"assay(@content@)assay\"; }

}  // namespace assay
")
  target_sources(${target} PRIVATE ${output})
endfunction()
