"""The scripts that make a shell ask for candidates. Pure text.

Each hands the line up to the cursor to ``sweeper completion words -- LINE`` and offers the lines it
gets back. They are for the console script ``sweeper``; ``python`` itself is not ours to complete.
"""

from __future__ import annotations

# readline cuts words at '=' and ':' too, and replaces only what stands behind the last of them:
# what stands before is taken off every candidate. An empty answer leaves the word to readline's own
# completion, which knows files.
BASH = r"""# sweeper completion for bash; use:  source <(sweeper completion bash)
_sweeper() {
    local line="${COMP_LINE:0:COMP_POINT}" current="${COMP_WORDS[COMP_CWORD]}" word cut candidate
    word="${line##*[[:space:]]}"
    [[ $current == [=:] ]] && current=""
    cut="${word%"$current"}"
    [[ -z $current && -n $word && $word != *[=:] ]] && cut=""
    COMPREPLY=()
    while IFS= read -r candidate; do
        [[ -n $candidate ]] && COMPREPLY+=("${candidate#"$cut"}")
    done < <("${COMP_WORDS[0]/#\~/$HOME}" completion words -- "$line" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *[=./] ]]; then
        compopt -o nospace 2>/dev/null
    fi
    return 0
}
complete -o default -F _sweeper sweeper
"""

ZSH = r"""#compdef sweeper
# sweeper completion for zsh; use:  source <(sweeper completion zsh)
_sweeper() {
    local -a found open closed
    local line="${(j: :)words[1,CURRENT]}" program="${words[1]/#\~/$HOME}"
    found=("${(@f)$($program completion words -- "$line" 2>/dev/null)}")
    found=(${found:#})
    open=(${(M)found:#*[=./]})
    closed=(${found:#*[=./]})
    (( ${#open} )) && compadd -Q -S '' -- "${open[@]}"
    (( ${#closed} )) && compadd -Q -- "${closed[@]}"
    (( ${#open} + ${#closed} )) || { compset -P '*='; _files }
}
compdef _sweeper sweeper
"""

FISH = r"""# sweeper completion for fish; use:  sweeper completion fish | source
function __sweeper_words
    set -l found (sweeper completion words -- (commandline -cp) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        set -l word (commandline -ct)
        set -l key (string match -r '^[^=]*=' -- $word)
        for path in (__fish_complete_path (string replace -r '^[^=]*=' '' -- $word))
            printf '%s%s\n' "$key" $path
        end
    end
end
complete -c sweeper -f -a '(__sweeper_words)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
"""By shell."""
