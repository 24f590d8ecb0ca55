#include "serve/hostile_requests.h"

namespace assay::testing {
namespace {

using Rows = std::vector<HostileRow>;
const std::string kGood = Served::chat_body();

std::string saying(const std::string& json_string) {
  return chat_bytes(R"({"model":"org/toy","messages":[{"role":"user","content":)" + json_string + "}]}");
}
std::string typed(const std::string& header, const std::string& body) {
  return fmt::format("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n{}Content-Length: {}\r\n\r\n{}",
                     header, body.size(), body);
}
std::string nested(int levels) {
  return std::string(static_cast<size_t>(levels), '[') + std::string(static_cast<size_t>(levels), ']');
}

void add_encodings(Rows& rows) {
  const auto bad = [&](const std::string& name, const std::string& bytes) {
    rows.push_back({name, bytes, 400, "invalid_json"});
  };
  bad("byte order mark", chat_bytes("\xef\xbb\xbf" + kGood));
  bad("UTF-16", chat_bytes(std::string("\xff\xfe{\0\"\0", 6)));
  bad("UTF-16 without mark", chat_bytes(std::string("{\0\"\0a\0\"\0", 8)));
  bad("bytes that are no UTF-8", saying("\"\xff\xfe\""));
  bad("cut character", saying("\"\xe2\x82\""));
  bad("overlong slash", saying("\"\xc0\xaf\""));
  bad("overlong NUL", saying("\"\xc0\x80\""));
  bad("surrogate as UTF-8", saying("\"\xed\xa0\x80\""));
  bad("beyond U+10FFFF", saying("\"\xf4\x90\x80\x80\""));
  bad("lone continuation", saying("\"\x80\""));
  bad("lone high surrogate", saying(R"("\ud83d")"));
  bad("lone low surrogate", saying(R"("\ude00")"));
  bad("surrogates in the wrong order", saying(R"("\ude00\ud83d")"));
  bad("high surrogate and a letter", saying(R"("\ud83dx")"));
  bad("cut escape", saying(R"("\u12")"));
  bad("escape without meaning", saying(R"("\x41")"));
  bad("raw NUL", saying(std::string("\"a\0b\"", 5)));
  bad("raw line feed", saying("\"a\nb\""));
  bad("raw tab", saying("\"a\tb\""));
  bad("NUL after the end", chat_bytes(kGood + std::string(1, '\0')));
  bad("no UTF-8 in a name", chat_bytes("{\"\xff\":1}"));
  rows.push_back({"escaped NUL is text", saying(R"("a\u0000b")"), 200, ""});
  rows.push_back({"DEL is text", saying("\"a\x7f\""), 200, ""});
  rows.push_back({"escaped pair", saying(R"("\ud83d\ude00")"), 200, ""});
  rows.push_back({"noncharacter", saying("\"\xef\xbf\xbf\""), 200, ""});
  rows.push_back({"right-to-left override", saying("\"\xe2\x80\xae\""), 200, ""});
}

void add_syntax(Rows& rows) {
  const auto bad = [&](const std::string& name, const std::string& body) {
    rows.push_back({name, chat_bytes(body), 400, "invalid_json"});
  };
  bad("empty", "");
  bad("white space", "   \r\n\t ");
  bad("null", "null");
  bad("true", "true");
  bad("number", "42");
  bad("string", "\"model\"");
  bad("array", "[" + kGood + "]");
  bad("half", kGood.substr(0, kGood.size() / 2));
  bad("without the last brace", kGood.substr(0, kGood.size() - 1));
  bad("one brace too many", kGood + "}");
  bad("two objects", kGood + kGood);
  bad("two lines", kGood + "\n" + kGood);
  bad("comma at the end", kGood.substr(0, kGood.size() - 1) + ",}");
  bad("comment", "/* c */" + kGood);
  bad("line comment", "// c\n" + kGood);
  bad("single quotes", "{'model':'org/toy'}");
  bad("bare names", "{model:1}");
  bad("name that is a number", "{1:2}");
  bad("form", "model=org%2Ftoy&messages=x");
  bad("XML", "<?xml version=\"1.0\"?><a/>");
  bad("XSSI guard", ")]}'\n" + kGood);
  bad("no colon", "{\"model\" \"x\"}");
  rows.push_back({"white space around", chat_bytes(" \t\r\n" + kGood + "\n\n"), 200, ""});
  rows.push_back(
      {"white space to the limit", chat_bytes(kGood + std::string(100000 - kGood.size(), ' ')), 200, ""});
  rows.push_back({"white space past the limit", chat_bytes(kGood + std::string(100001 - kGood.size(), ' ')),
                  413, "request_too_large", After::kClosed});
}

void add_names(Rows& rows) {
  const auto doubled = [&](const std::string& name, const std::string& bytes) {
    rows.push_back({"doubled " + name, bytes, 400, "invalid_json"});
  };
  doubled("model", chat_with(R"("model":"org/toy")"));
  doubled("messages", chat_with(R"("messages":[])"));
  doubled("max_tokens with the same value", chat_with(R"("max_tokens":3,"max_tokens":3)"));
  doubled("name in an escape", chat_with(R"("max_tokens":3,"max\u005ftokens":4)"));
  doubled("role",
          chat_bytes(R"({"model":"org/toy","messages":[{"role":"user","role":"system","content":"x"}]})"));
  doubled("token", chat_with(R"("logit_bias":{"1":1,"1":2})"));
  doubled("property",
          chat_with(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":)"
                    R"({"type":"object","properties":{"a":{},"a":{}}}}})"));
  const auto unknown = [&](const std::string& name, const std::string& field) {
    rows.push_back({name, chat_with(field), 400, "unknown_parameter"});
  };
  unknown("empty name", R"("":1)");
  unknown("prototype", R"("__proto__":{"admin":true})");
  unknown("name in capitals", R"("Max_Tokens":3)");
  unknown("name with white space", R"("max_tokens ":3)");
  unknown("name with NUL", R"("max_tokens\u0000":3)");
  unknown("name with line ends", R"("a\r\nX-Injected: 1":3)");
  unknown("name of 60,000 bytes", "\"" + std::string(60000, 'k') + "\":1");
  unknown("unknown with null", R"("max_token":null)");
}

void add_numbers(Rows& rows) {
  for (const char* number : {"NaN", "nan", "Infinity", "-Infinity", "+1", ".5", "1.", "01", "0x10", "1e",
                             "1e+", "--1", "1_000", "1,5", "-"}) {
    rows.push_back({std::string("number ") + number, chat_with("\"temperature\":" + std::string(number)), 400,
                    "invalid_json"});
  }
  rows.push_back({"1e999", chat_with(R"("temperature":1e999)"), 400, "invalid_value"});
  rows.push_back({"-1e999", chat_with(R"("temperature":-1e999)"), 400, "invalid_value"});
  rows.push_back({"1e-999", chat_with(R"("temperature":1e-999)"), 200, ""});
  rows.push_back({"-0", chat_with(R"("temperature":-0)"), 200, ""});
  rows.push_back({"-0.0", chat_with(R"("temperature":-0.0)"), 200, ""});
  rows.push_back({"-0 choices", chat_with(R"("n":-0)"), 400, "invalid_value"});
  rows.push_back({"thousand digits", chat_with("\"n\":" + std::string(1000, '9')), 400, "invalid_value"});
  rows.push_back(
      {"thousand digits after the point", chat_with("\"temperature\":0." + std::string(1000, '3')), 200, ""});
  rows.push_back({"number in a string", chat_with(R"("temperature":"0.5")"), 400, "invalid_type"});
}

void add_sizes(Rows& rows) {
  // The body is one level, its field's value another.
  rows.push_back({"32 levels", chat_with("\"stop\":" + nested(31)), 400, "invalid_type"});
  rows.push_back({"33 levels", chat_with("\"stop\":" + nested(32)), 400, "json_too_deep"});
  rows.push_back({"33 levels of objects",
                  chat_with("\"stop\":" + repeated("{\"a\":", 32) + "1" + repeated("}", 32)), 400,
                  "json_too_deep"});
  rows.push_back({"90,000 levels", chat_bytes(std::string(90000, '[')), 400, "json_too_deep"});
  rows.push_back({"90,000 levels of objects", chat_bytes(repeated("{\"a\":", 18000)), 400, "json_too_deep"});
  rows.push_back({"4,097 messages",
                  chat_bytes(R"({"model":"org/toy","messages":[)" + repeated("{},", 4096) + "{}]}"), 400,
                  "invalid_value"});
  rows.push_back({"9,001 names",
                  [] {
                    std::string fields;
                    for (int i = 0; i < 9000; ++i) fields += fmt::format("\"k{}\":0,", i);
                    return chat_with(fields + "\"last\":0");
                  }(),
                  400, "unknown_parameter"});
}

void add_types(Rows& rows) {
  for (const char* type : {"text/plain", "text/json", "application/x-www-form-urlencoded",
                           "application/jsonp", "multipart/form-data; boundary=b", "application/octet-stream",
                           "json", ";", "application/json/x", "application / json"}) {
    rows.push_back({std::string("type ") + type, typed("Content-Type: " + std::string(type) + "\r\n", kGood),
                    415, "unsupported_content_type"});
  }
  for (const char* type : {"application/json; charset=utf-8", "APPLICATION/JSON", "application/json ;x=y"}) {
    rows.push_back(
        {std::string("type ") + type, typed("Content-Type: " + std::string(type) + "\r\n", kGood), 200, ""});
  }
  rows.push_back({"no type", typed("", kGood), 200, ""});
  for (const char* coding : {"gzip", "br", "deflate", "zstd", "gzip, identity", "x"}) {
    rows.push_back(
        {std::string("content coding ") + coding,
         typed("Content-Type: application/json\r\nContent-Encoding: " + std::string(coding) + "\r\n", kGood),
         415, "unsupported_content_encoding"});
  }
  rows.push_back({"identity coding", typed("Content-Encoding: identity\r\n", kGood), 200, ""});
}

}  // namespace

std::vector<HostileRow> json_rows() {
  Rows rows;
  add_encodings(rows);
  add_syntax(rows);
  add_names(rows);
  add_numbers(rows);
  add_sizes(rows);
  add_types(rows);
  return rows;
}

}  // namespace assay::testing
