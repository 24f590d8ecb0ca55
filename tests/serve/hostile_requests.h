// One request that a server must survive, and exactly what it gets. The tables lie in
// hostile_<subject>_rows.cpp.
#pragma once

#include <string>
#include <vector>

#include "serve/served.h"

namespace assay::testing {

enum class After {
  kOpen,    // the connection goes on: the next request on it is answered
  kClosed,  // the server ends the connection, and nothing that follows on it was taken for a request
};

struct HostileRow {
  std::string name;
  std::string bytes;
  int status = 400;
  std::string code;  // of the error object; empty where the request is answered
  After after = After::kOpen;
};

std::vector<HostileRow> framing_rows();    // request lines, headers, lengths, chunks
std::vector<HostileRow> json_rows();       // encodings, numbers, nesting, names, content types
std::vector<HostileRow> parameter_rows();  // every parameter at its bounds and past them, and wrong types
std::vector<HostileRow> schema_rows();     // schemas, patterns, tools, biases

// POST /v1/chat/completions with this body, or with a valid body and one more field.
inline std::string chat_bytes(const std::string& body) {
  return Served::post_text("/v1/chat/completions", body);
}
inline std::string chat_with(const std::string& more) {
  return chat_bytes(Served::chat_body(more));
}
inline std::string text_bytes(const std::string& body) {
  return Served::post_text("/v1/completions", body);
}
inline std::string text_with(const std::string& more) {
  return text_bytes(Served::completion_body(more));
}
inline std::string repeated(const std::string& text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

}  // namespace assay::testing
