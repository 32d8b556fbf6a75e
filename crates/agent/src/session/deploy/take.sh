# Runs in /bin/sh on a host reached by ssh, as the user that the agent is to be; what stands before it gives sha, length,
# keep and "$@". Takes landspeed on standard input and becomes it. The file has lost its name before its first byte
# comes, so nothing is left of it whatever dies. A folder is entered before anything in it is looked at or made, so that
# no name leads elsewhere in between.

refuse() {
    printf '\n@landspeed refuse %s\n' "$*"
    exit 1
}

umask 077
own=/proc/$$/fd/9
kept=landspeed-sent

# Whether descriptor 9 is what was asked for, and belongs to this user.
sound() {
    sum=$(sha256sum <"$own") && [ "${sum%% *}" = "$sha" ] && [ -O "$own" ]
}

# Whether the folder that was entered is root's or this user's, and no other user may rename what lies in it.
safe() {
    set -- $(ls -ldn .)
    [ "$3" = 0 ] || [ "$3" = "$(id -u)" ] || return 1
    case $1 in d????-??-* | d????????[tT]*) ;; *) return 1 ;; esac
}

# Enters the folder for what is kept; not through a symbolic link, which leads to files that are not ours.
enter_cache() {
    why="it cannot be entered"
    cd -P "${XDG_CACHE_HOME:-$HOME/.cache}" && above=$(pwd -P) && cd -P landspeed || return 1
    why="it is a symbolic link"
    [ "$(pwd -P)" = "${above%/}/landspeed" ] || return 1
    why="other users may write there"
    [ -O . ] && safe
} 2>/dev/null

# Puts a copy there, in the place of an earlier one. No other file is touched.
keep() {
    mkdir -p "${XDG_CACHE_HOME:-$HOME/.cache}/landspeed" 2>/dev/null
    enter_cache || return 1
    why="its file $kept is not ours"
    if [ -e $kept ] || [ -L $kept ]; then
        [ -f $kept ] && [ ! -L $kept ] && [ -O $kept ] || return 1
    fi
    why="it has no room"
    new=$(mktemp ./.landspeed.XXXXXX) || return 1
    cp "$own" "$new" && chmod 700 "$new" && mv -f "$new" $kept && return
    rm -f "$new"
    return 1
} 2>/dev/null

# Opens a new file without a name as descriptor 9 in folder $1, where it has room and may run; or says why not.
open_in() {
    exec 9<&-
    why="cannot be entered"
    cd -P "$1" || return 1
    why="others may write there"
    safe || return 1
    why="takes no file"
    file=$(mktemp ./.landspeed.XXXXXX) || return 1
    exec 9<"$file"
    rm -f "$file"
    chmod 700 "$own"
    why="no room for $length bytes"
    head -c "$length" /dev/zero >"$own" || return 1
    # Some mounts let no program run, which only a program can tell.
    why="runs no program (noexec)"
    printf '#!/bin/sh\nexit\n' 1<>"$own" && "$own" </dev/null
} 2>/dev/null

for tool in sha256sum head mktemp; do
    command -v $tool >/dev/null || refuse "there is no $tool: install coreutils"
done

if enter_cache && [ -f $kept ] && [ -r $kept ]; then
    exec 9<$kept
    sound && "$own" --version </dev/null >/dev/null 2>&1 && cd / && exec "$own" "$@"
fi

tried=
for folder in "${XDG_RUNTIME_DIR:-}" /tmp /var/tmp /dev/shm "${HOME:+$HOME/.cache}" "${HOME:-}"; do
    [ -n "$folder" ] || continue
    open_in "$folder" && tried= && break
    tried="$tried${tried:+; }$folder: $why"
done
[ -z "$tried" ] || refuse "make room in a folder, or install landspeed here: none takes it ($tried)"

printf '\n@landspeed file %s\n' "$folder"
head -c "$length" 1<>"$own" || refuse "$folder has no room for $length bytes any more: free some"
sound || refuse "what arrived is not what was sent, by its SHA-256: try again"
said=$("$own" --version </dev/null 2>&1) ||
    refuse "the controller's landspeed does not start here: $said; install what is missing, or run a static one there (make dist)"
if [ "$keep" = yes ]; then
    keep || printf '%s\n' "landspeed is not kept in ${XDG_CACHE_HOME:-$HOME/.cache}/landspeed: $why" >&2
fi
cd /
exec "$own" "$@"
