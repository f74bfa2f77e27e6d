// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "sim/app/cli/completion.h"
#include "sim/app/cli/verb.h"

namespace orrery {
namespace {

/// Both shells ask the program for what fits; where it has nothing to say, they offer files. A word
/// that ends in "=" goes on: no space behind it.
constexpr const char* kBash = R"sh(_orrery() {
  local word words=()
  # bash takes "path=value" for three words.
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [ ${#words[@]} -gt 0 ] && { [ "$word" = "=" ] || [[ ${words[-1]} == ?*= ]]; }; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
  done
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" completion words -- "${words[@]}" 2>/dev/null)
  if [ ${#COMPREPLY[@]} -eq 0 ]; then
    compopt -o default 2>/dev/null
  elif [[ ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2>/dev/null
  fi
  [[ ${words[-1]} == *=* && $COMP_WORDBREAKS == *=* ]] && COMPREPLY=("${COMPREPLY[@]#*=}")
  return 0
}
complete -F _orrery orrery
)sh";

constexpr const char* kZsh = R"sh(_orrery() {
  local -a found
  found=(${(f)"$("${words[1]}" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( ${#found} == 0 )); then
    _files
  else
    compadd -Q -S '' -- ${(M)found:#*=}
    compadd -- ${found:#*=}
  fi
}
compdef _orrery orrery
)sh";

struct CompletionArguments {
  std::string shell;
  std::vector<std::string> words;

  void take(Options& options) {
    options.positional("SHELL", shell,
                       "bash or zsh: a script for it; words: what may stand for the last of WORDS");
    options.optional_positionals("WORDS", words, "words of a command line, behind --");
  }

  ExitCode run() const {
    if (shell == "bash" || shell == "zsh") {
      std::cout << (shell == "bash" ? kBash : kZsh);
    } else if (shell == "words") {
      for (const std::string& word : complete(words)) std::cout << word << "\n";
    } else {
      throw UsageError("no completion for '" + shell + "'; there are: bash, zsh, words");
    }
    return ExitCode::kOk;
  }
};

const RegisterVerb<CompletionArguments> registered_completion(
    "completion", "print a script that completes commands: eval \"$(orrery completion bash)\"");

}  // namespace
}  // namespace orrery
