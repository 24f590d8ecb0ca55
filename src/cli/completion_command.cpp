// `assay completion bash|zsh|fish`: a completion script made from the commands and options that this binary
// has.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"

namespace assay {
namespace {

std::string option_words(const CLI::App& app) {
  std::string words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words += (words.empty() ? "--" : " --") + name;
  }
  return words;
}

std::string command_words(const CLI::App& root) {
  std::string words;
  for (const CLI::App* sub : root.get_subcommands({})) words += (words.empty() ? "" : " ") + sub->get_name();
  return words;
}

std::string bash_script(const CLI::App& root) {
  std::string cases;
  for (const CLI::App* sub : root.get_subcommands({})) {
    cases += fmt::format("    {}) words=\"{}\" ;;\n", sub->get_name(), option_words(*sub));
  }
  return fmt::format(
      "_assay() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} words\n"
      "  case ${{COMP_WORDS[1]}} in\n{}    *) words=\"{} {}\" ;;\n  esac\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then words=\"{} {}\"; fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\") $(compgen -f -- \"$current\"))\n"
      "}}\n"
      "complete -o filenames -F _assay assay\n",
      cases, command_words(root), option_words(root), command_words(root), option_words(root));
}

std::string zsh_script(const CLI::App& root) {
  return "#compdef assay\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(root);
}

std::string fish_script(const CLI::App& root) {
  std::string script;
  for (const CLI::App* sub : root.get_subcommands({})) {
    script += fmt::format("complete -c assay -n __fish_use_subcommand -a {} -d '{}'\n", sub->get_name(),
                          sub->get_description());
    for (const CLI::Option* option : sub->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        script += fmt::format("complete -c assay -n '__fish_seen_subcommand_from {}' -l {}\n",
                              sub->get_name(), name);
      }
    }
  }
  return script;
}

}  // namespace

Run configure_completion_command(CLI::App& app) {
  auto shell = std::make_shared<std::string>("bash");
  app.add_option("shell", *shell, "bash, zsh or fish")->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell, root = app.get_parent()] {
    const std::string script = *shell == "fish"  ? fish_script(*root)
                               : *shell == "zsh" ? zsh_script(*root)
                                                 : bash_script(*root);
    std::fputs(script.c_str(), stdout);
    return kExitDone;
  };
}

}  // namespace assay
