#include "tenants/tenant_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "tenants/tenant_directory.h"

namespace assay {
namespace {

std::optional<std::string> variables(const std::string& name) {
  if (name == "BATCH_KEY") return "from-the-environment";
  return std::nullopt;
}

TEST(TenantFile, Everything_isRead) {
  const auto table = parse_tenants(R"(
[[tenant]]
name = "search"
keys = ["sk-search-1", "sk-search-2"]
weight = 3
priority = -5
requests_in_flight = 8
requests_per_minute = 600
tokens_per_minute = 60_000
ttft_bound = "500 ms"
at_ttft_bound = "queue"
admin = true

[[tenant]]
name = "batch"
key_env = "BATCH_KEY"
key_sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
)",
                                   "keys.toml", variables);
  ASSERT_TRUE(table) << table.error().message();
  ASSERT_EQ(table->size(), 2U);
  const TenantPolicy& search = table->front().policy;
  EXPECT_EQ(search.name, "search");
  EXPECT_EQ(search.weight, 3);
  EXPECT_EQ(search.priority, -5);
  EXPECT_EQ(search.in_flight_limit, 8);
  EXPECT_EQ(search.requests_per_minute, 600);
  EXPECT_EQ(search.tokens_per_minute, 60000);
  EXPECT_DOUBLE_EQ(search.ttft_bound_seconds.value(), 0.5);
  EXPECT_FALSE(search.refuse_late);
  EXPECT_TRUE(search.admin);
  const TenantPolicy& batch = table->back().policy;
  EXPECT_EQ(batch.weight, 1);
  EXPECT_FALSE(batch.ttft_bound_seconds || batch.admin);
  EXPECT_TRUE(batch.refuse_late);
  const TenantDirectory directory(*table);
  EXPECT_EQ(directory.find("sk-search-2")->name(), "search");
  EXPECT_EQ(directory.find("from-the-environment")->name(), "batch");
  EXPECT_EQ(directory.find("abc")->name(), "batch") << "a digest says nothing of the key's length";
}

struct Refusal {
  const char* toml;
  const char* words;
};

TEST(TenantFile, Wrong_isRefusedWithItsPlace) {
  const Refusal cases[] = {
      {"", "[[tenant]]"},
      {"tenant = 3", "[[tenant]]"},
      {"tenant = []", "[[tenant]]"},
      {"[tenant]\nname = \"a\"", "[[tenant]]"},
      {"[[tenants]]\nname = \"a\"", "keys.toml:1: tenants: unknown"},
      {"[[tenant]]\nname = \"a", "keys.toml:2"},
      {"[[tenant]]\nkeys = [\"sk-12345\"]", "name: is required"},
      {"[[tenant]]\nname = \"a b\"\nkeys = [\"sk-12345\"]", "keys.toml:2"},
      {"[[tenant]]\nname = \"\"\nkeys = [\"sk-12345\"]", "1 to 64"},
      {"[[tenant]]\nname = \"a\"", "no key"},
      {"[[tenant]]\nname = \"a\"\nkeys = []", "no key"},
      {"[[tenant]]\nname = \"a\"\nkeys = [3]", "keys.toml:3: a.keys: expected strings"},
      {"[[tenant]]\nname = \"a\"\nkeys = [\"short\"]", "8 to 1024"},
      {"[[tenant]]\nname = \"a\"\nkeys = [\"with a space\"]", "visible ASCII"},
      {"[[tenant]]\nname = \"a\"\nkey_env = [\"NO_SUCH\"]", "NO_SUCH"},
      {"[[tenant]]\nname = \"a\"\nkey_sha256 = [\"abc\"]", "SHA-256"},
      {"[[tenant]]\nname = \"a\"\nkeys = [\"sk-12345\"]\nweight = 0", "a.weight"},
      {"[[tenant]]\nname = \"a\"\nkeys = [\"sk-12345\"]\nweight = nan", "a.weight"},
      {"[[tenant]]\nname = \"a\"\nkeys = [\"sk-12345\"]\npriority = 1.5", "a.priority"},
      {"[[tenant]]\nname = \"a\"\nkeys = [\"sk-12345\"]\nrequests_in_flight = 0", "a.requests_in_flight"},
      {"[[tenant]]\nname = \"a\"\nkeys = [\"sk-12345\"]\ntokens_per_minute = -1", "a.tokens_per_minute"},
      {"[[tenant]]\nname = \"a\"\nkeys = [\"sk-12345\"]\nttft_bound = \"fast\"", "a.ttft_bound"},
      {"[[tenant]]\nname = \"a\"\nkeys = [\"sk-12345\"]\nttft_bound = \"0 s\"", "a.ttft_bound"},
      {"[[tenant]]\nname = \"a\"\nkeys = [\"sk-12345\"]\nat_ttft_bound = \"drop\"", "refuse"},
      {"[[tenant]]\nname = \"a\"\nkeys = [\"sk-12345\"]\nadmin = 1", "a.admin"},
      {"[[tenant]]\nname = \"a\"\nkeys = [\"sk-12345\"]\nwieght = 2", "a.wieght: unknown key"},
      {"[[tenant]]\nname = \"a\"\nkeys = [\"sk-12345\", \"sk-12345\"]", "given twice"},
      {"[[tenant]]\nname = \"a\"\nkeys = [\"sk-12345\"]\n[[tenant]]\nname = \"a\"\nkeys = [\"sk-12346\"]",
       "two tenants"},
  };
  for (const Refusal& wrong : cases) {
    const auto table = parse_tenants(wrong.toml, "keys.toml", variables);
    ASSERT_FALSE(table) << wrong.toml;
    EXPECT_EQ(table.error().code, ErrorCode::kInvalidArgument) << wrong.toml;
    const std::string message = table.error().message();
    EXPECT_NE(message.find(wrong.words), std::string::npos) << message << "\n" << wrong.toml;
    EXPECT_EQ(message.find("sk-1234"), std::string::npos) << "a key is repeated: " << message;
  }
}

TEST(TenantFile, ReadableByAll_isWarnedOf) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "tenant_file_test.toml";
  std::ofstream(path) << "[[tenant]]\nname = \"a\"\nkeys = [\"sk-12345\"]\n";
  using std::filesystem::perms;
  std::filesystem::permissions(path, perms::owner_read | perms::others_read);
  EXPECT_EQ(read_tenant_file(path)->warnings.size(), 1U);
  std::filesystem::permissions(path, perms::owner_read);
  EXPECT_TRUE(read_tenant_file(path)->warnings.empty());
  std::filesystem::remove(path);
  EXPECT_FALSE(read_tenant_file(path));
}

TEST(TenantFile, TheOneInTheDocumentation_isRead) {
  const auto text = read_file(std::filesystem::path(ASSAY_SOURCE_DIR) / "docs/serving.md");
  ASSERT_TRUE(text);
  const size_t begin = text->find("```toml\n") + 8;
  const auto table = parse_tenants(text->substr(begin, text->find("```", begin) - begin), "docs", variables);
  ASSERT_TRUE(table) << table.error().message();
  EXPECT_EQ(table->size(), 3U);
  EXPECT_EQ(TenantDirectory(*table).find("sk-batch-2b6f")->name(), "batch");
}

TEST(TenantFile, OneKey_isAnAdmin) {
  const auto table = tenant_of_key("sk-from-environment", "ASSAY_API_KEY");
  ASSERT_TRUE(table);
  const TenantDirectory directory(*table);
  EXPECT_TRUE(directory.asks_for_keys());
  EXPECT_TRUE(directory.find("sk-from-environment")->policy().admin);
  EXPECT_FALSE(tenant_of_key("", "ASSAY_API_KEY"));
}

}  // namespace
}  // namespace assay
