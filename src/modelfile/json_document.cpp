#include "modelfile/json_document.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse.hpp>
#include <cmath>
#include <new>
#include <set>
#include <vector>

#include "base/file.h"
#include "modelfile/show_name.h"

namespace assay::modelfile_internal {
namespace json = boost::json;
namespace {

// Refuses to hand out more than a budget: a small file cannot describe a huge document.
class BudgetResource final : public json::memory_resource {
 public:
  explicit BudgetResource(uint64_t budget) : left_(budget) {}

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    if (bytes > left_) throw std::bad_alloc();
    void* block = ::operator new(bytes, std::align_val_t(alignment));
    left_ -= bytes;
    return block;
  }
  void do_deallocate(void* block, size_t bytes, size_t alignment) override {
    ::operator delete(block, std::align_val_t(alignment));
    left_ += bytes;
  }
  bool do_is_equal(const json::memory_resource& other) const noexcept override { return this == &other; }

  uint64_t left_;
};

// Counts the members that are written; fewer in the parsed document means that a name occurs twice.
struct MemberCounter {
  static constexpr size_t max_object_size = SIZE_MAX;
  static constexpr size_t max_array_size = SIZE_MAX;
  static constexpr size_t max_key_size = SIZE_MAX;
  static constexpr size_t max_string_size = SIZE_MAX;

  uint64_t members = 0;

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) { return true; }
  bool on_object_end(size_t count, json::error_code&) {
    members += count;
    return true;
  }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_array_end(size_t, json::error_code&) { return true; }
  bool on_key_part(json::string_view, size_t, json::error_code&) { return true; }
  bool on_key(json::string_view, size_t, json::error_code&) { return true; }
  bool on_string_part(json::string_view, size_t, json::error_code&) { return true; }
  bool on_string(json::string_view, size_t, json::error_code&) { return true; }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(int64_t, json::string_view, json::error_code&) { return true; }
  bool on_uint64(uint64_t, json::string_view, json::error_code&) { return true; }
  bool on_double(double, json::string_view, json::error_code&) { return true; }
  bool on_bool(bool, json::error_code&) { return true; }
  bool on_null(json::error_code&) { return true; }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }
};

// Depth is limited by the parser.
uint64_t count_members(const json::value& value) {
  uint64_t count = 0;
  if (const auto* object = value.if_object()) {
    count = object->size();
    for (const auto& member : *object) count += count_members(member.value());
  } else if (const auto* array = value.if_array()) {
    for (const json::value& element : *array) count += count_members(element);
  }
  return count;
}

json::parse_options options_for(const JsonLimits& limits) {
  json::parse_options options;
  options.max_depth = limits.depth;
  return options;
}

}  // namespace

Result<json::value> parse_json(std::string_view text, std::string_view where, JsonLimits limits) {
  try {
    json::error_code error;
    json::basic_parser<MemberCounter> counter(options_for(limits));
    const size_t good = counter.write_some(false, text.data(), text.size(), error);
    if (error)
      return fail(ErrorCode::kCorrupt, where, "is not valid JSON at byte {}: {}", good, error.message());
    json::value document = json::parse(
        text, error, json::make_shared_resource<BudgetResource>(limits.memory_bytes), options_for(limits));
    if (error) return fail(ErrorCode::kCorrupt, where, "is not valid JSON: {}", error.message());
    if (count_members(document) != counter.handler().members) {
      return fail(ErrorCode::kCorrupt, where, "an object of its JSON has the same name twice");
    }
    return document;
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kResourceExhausted, where, "its JSON needs more than {} bytes of memory",
                limits.memory_bytes);
  } catch (const std::exception& broken) {
    return fail(ErrorCode::kCorrupt, where, "its JSON cannot be read: {}", broken.what());
  }
}

Result<json::value> read_json_file(const std::string& path, uint64_t limit_bytes) {
  ASSIGN_OR_RETURN(const std::string text, read_file(path, limit_bytes));
  return parse_json(text, path);
}

Result<JsonReader> as_object(const json::value& document, std::string_view where) {
  if (const auto* object = document.if_object()) return JsonReader(*object, where);
  return fail(ErrorCode::kCorrupt, where, "expected a JSON object");
}

const json::value* JsonReader::find(std::string_view name) const {
  const json::value* value = object_->if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::unexpected<Error> JsonReader::mismatch(std::string_view name, std::string_view expected) const {
  return fail(ErrorCode::kCorrupt, where_, "{}: expected {}", show_name(name), expected);
}

Result<std::optional<int64_t>> JsonReader::integer(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return value->get_int64();
  if (const double* number = value->if_double();
      number != nullptr && std::abs(*number) < 0x1p53 && std::trunc(*number) == *number) {
    return static_cast<int64_t>(*number);
  }
  return mismatch(name, "an integer");
}

Result<std::optional<double>> JsonReader::number(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return static_cast<double>(value->get_int64());
  if (value->is_uint64()) return static_cast<double>(value->get_uint64());
  if (value->is_double()) return value->get_double();
  return mismatch(name, "a number");
}

Result<std::optional<bool>> JsonReader::boolean(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  return mismatch(name, "true or false");
}

Result<std::optional<std::string>> JsonReader::text(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* text = value->if_string()) return std::string(text->begin(), text->end());
  return mismatch(name, "a text");
}

Result<std::optional<JsonReader>> JsonReader::child(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* object = value->if_object()) return JsonReader(*object, where_ + ": " + std::string(name));
  return mismatch(name, "an object");
}

Result<const json::array*> JsonReader::array(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return nullptr;
  if (const auto* array = value->if_array()) return array;
  return mismatch(name, "an array");
}

}  // namespace assay::modelfile_internal
