#include "cli/chat_terminal.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "cli/answer.h"
#include "cli/command.h"

namespace assay {
namespace {

constexpr const char* kHelp =
    "  /help            this list\n"
    "  /reset           forget the conversation\n"
    "  /system [TEXT]   set the system message, or show it; the conversation starts again\n"
    "  /stats           timings of the last answer\n"
    "  /exit            leave (also Ctrl-D)\n"
    "  Ctrl-C stops an answer. A line that ends in \\ goes on in the next.\n";

void show(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

enum class Input { kLine, kInterrupted, kEnd };

Input read_physical_line(std::string& line) {
  char* buffer = nullptr;
  size_t capacity = 0;
  errno = 0;
  const ssize_t n = ::getline(&buffer, &capacity, stdin);
  const int error = errno;
  if (n > 0) line.assign(buffer, static_cast<size_t>(n));
  std::free(buffer);
  if (n <= 0) {
    std::clearerr(stdin);
    return error == EINTR ? Input::kInterrupted : Input::kEnd;
  }
  if (line.ends_with('\n')) line.pop_back();
  if (line.ends_with('\r')) line.pop_back();
  return Input::kLine;
}

class ChatTerminal {
 public:
  ChatTerminal(Engine& engine, ChatSession& session, const SamplingOptions& options, InterruptFlag& interrupt)
      : engine_(engine),
        session_(session),
        options_(options),
        interrupt_(interrupt),
        on_terminal_(::isatty(STDIN_FILENO) != 0) {}

  int run() {
    if (on_terminal_) show("/help lists the commands, Ctrl-D leaves.\n");
    std::string line;
    while (true) {
      switch (read_line(line)) {
        case Input::kEnd:
          if (on_terminal_) show("\n");
          return kExitDone;
        case Input::kInterrupted:
          interrupt_.clear();
          if (!on_terminal_) return kExitInterrupted;
          show("\n/exit or Ctrl-D leaves.\n");
          continue;
        case Input::kLine:
          break;
      }
      if (line.find_first_not_of(" \t") == std::string::npos) continue;
      if (line == "/exit" || line == "/quit" || line == "/bye") return kExitDone;
      if (line.starts_with('/')) {
        obey(line);
      } else if (const int code = ask(line); code != kExitDone) {
        return code;
      }
    }
  }

 private:
  Input read_line(std::string& line) {
    line.clear();
    const char* mark = "> ";
    while (true) {
      if (on_terminal_) show(mark);
      std::string part;
      if (const Input input = read_physical_line(part); input != Input::kLine) return input;
      line += part;
      if (!line.ends_with('\\')) return Input::kLine;
      line.back() = '\n';
      mark = ". ";
    }
  }

  void obey(std::string_view line) {
    if (line == "/help") {
      show(kHelp);
    } else if (line == "/reset") {
      session_.reset();
      show("forgotten\n");
    } else if (line == "/system") {
      show(session_.system().empty() ? std::string("no system message of your own\n")
                                     : session_.system() + "\n");
    } else if (line.starts_with("/system ")) {
      session_.reset();
      session_.set_system(std::string(line.substr(8)));
      show("set; the conversation starts again\n");
    } else if (line == "/stats") {
      show(stats_.empty() ? "no answer yet\n" : stats_ + "\n");
    } else {
      show("unknown command; /help lists them\n");
    }
  }

  // A refused question leaves the conversation as it was. On a terminal one may go on; in a pipe it is an
  // error.
  int ask(const std::string& question) {
    const auto turn = session_.ask(question);
    if (!turn) return refuse(turn.error());
    if (turn->n_forgotten > 0 && on_terminal_)
      show(fmt::format("(the context is full: {} old messages are forgotten)\n", turn->n_forgotten));
    interrupt_.clear();
    const auto answered = answer(engine_, request_of(options_, turn->prompt), interrupt_, show);
    if (!answered) {
      session_.withdraw();
      return refuse(answered.error());
    }
    show(answered->text.ends_with('\n') ? "" : "\n");
    stats_ = describe_timings(*answered);
    session_.answer(answered->text);
    const bool stopped = interrupt_.raised();
    interrupt_.clear();
    return stopped && !on_terminal_ ? kExitInterrupted : kExitDone;
  }

  int refuse(const Error& error) {
    const int code = report_error(error);
    return on_terminal_ ? kExitDone : code;
  }

  Engine& engine_;
  ChatSession& session_;
  const SamplingOptions& options_;
  InterruptFlag& interrupt_;
  const bool on_terminal_;
  std::string stats_;
};

}  // namespace

int chat_in_terminal(Engine& engine, ChatSession& session, const SamplingOptions& options,
                     InterruptFlag& interrupt) {
  return ChatTerminal(engine, session, options, interrupt).run();
}

}  // namespace assay
