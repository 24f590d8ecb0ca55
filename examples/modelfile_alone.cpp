// Lists what a checkpoint holds, with nothing but the modelfile library: modelfile_alone [file or folder].
// Without an argument it writes a small GGUF file and reads that.
#include <cstdio>
#include <filesystem>

#include "modelfile/checkpoint.h"
#include "modelfile/gguf_writer.h"

namespace {

assay::Result<void> write_sample(const std::filesystem::path& path) {
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6};
  assay::GgufDocument document{
      {{"general.architecture", "llama"}, {"llama.block_count", uint64_t{1}}},
      {{.name = "token_embd.weight", .type = assay::BlockType::kF32, .shape = {2, 3}}}};
  document.tensors[0].data = std::as_bytes(std::span(weights));
  return assay::write_gguf(path, document);
}

int list(const std::filesystem::path& path) {
  const auto checkpoint = assay::Checkpoint::open(path);
  if (!checkpoint) {
    std::fprintf(stderr, "%s\n", checkpoint.error().message().c_str());
    return 1;
  }
  std::printf("%s, architecture %s\n", std::string(checkpoint->container()).c_str(),
              std::string(checkpoint->architecture()).c_str());
  for (const assay::Tensor& tensor : checkpoint->tensors()) {
    std::printf("%-40s %-8s %12lld values %12zu bytes\n", tensor.name.c_str(),
                std::string(assay::name(tensor.type)).c_str(), static_cast<long long>(tensor.n_values()),
                tensor.data.size());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return list(argv[1]);
  const auto path = std::filesystem::temp_directory_path() / "modelfile_alone.gguf";
  if (const auto written = write_sample(path); !written) {
    std::fprintf(stderr, "%s\n", written.error().message().c_str());
    return 1;
  }
  const int code = list(path);
  std::filesystem::remove(path);
  return code;
}
