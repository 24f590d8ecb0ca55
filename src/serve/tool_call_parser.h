// Splits an answer's text, as it streams, into content and tool calls (formats: serve/tool_format.h). What
// looks like a call but does not become one (a name that was not offered, broken JSON) is content. Arguments
// stream through as they are written. White space around calls is dropped. Never fails, whatever the model
// writes. Not thread safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/tool_format.h"

namespace assay {

struct ToolEvent {
  enum class Kind { kContent, kCall, kArguments, kCount };
  Kind kind = Kind::kContent;
  std::string text;  // content, the function's name, or a piece of its arguments
  size_t call = 0;   // which, from 0
};

class ToolCallParser {
 public:
  // `opened`: the prompt already ends with what opens a call.
  ToolCallParser(ToolFormat format, std::vector<std::string> names, bool opened);

  std::vector<ToolEvent> feed(std::string_view text);
  std::vector<ToolEvent> finish();  // what was held back
  size_t n_calls() const { return n_calls_; }

 private:
  enum class State { kStart, kContent, kHead, kWhole, kArguments, kTail, kAfter, kCount };

  // Each looks at the buffer; false when it needs more text.
  bool look();
  bool look_at_start();
  bool look_at_content();
  bool look_at_head();
  bool look_at_whole();
  bool stream_arguments();
  bool look_at_tail();
  bool look_after();

  void add_content(std::string_view text);
  void begin_call(std::string name);
  void add_arguments(std::string_view text);
  void give_up();  // the held text was no call
  std::optional<size_t> object_end();
  bool is_offered(std::string_view name) const;

  const ToolFormat format_;
  const std::vector<std::string> names_;
  State state_;
  std::string buffer_;  // not looked at yet
  std::string held_;    // of the call so far, in case it is none
  std::string space_;   // white space that waits for content
  bool any_content_ = false;
  size_t n_calls_ = 0;
  // While inside JSON.
  size_t scanned_ = 0;
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false;
  std::vector<ToolEvent> events_;
};

}  // namespace assay
