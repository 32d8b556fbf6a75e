# Runs in /bin/sh on a host reached by ssh; what stands before it gives version, machine, given, root, ask and "$@".
# Starts the landspeed that is installed there, as root where that is needed, or asks for the script that takes one.

refuse() {
    printf '\n@landspeed refuse %s\n' "$*"
    exit 1
}

start() {
    if [ "$root" = no ] || [ "$(id -u)" = 0 ]; then
        exec "$@"
    fi
    command -v sudo >/dev/null || refuse "this user is not root and there is no sudo: log in as root"
    [ "$ask" = yes ] || exec sudo -n -H -- "$@"
    # The prompt is for the controller; -k leaves no cached password behind.
    exec sudo -k -S -H -p '@landspeed password
' -- "$@"
}

[ -z "$given" ] || start "$given" "$@"
found=$(command -v landspeed) && [ "$("$found" --version </dev/null 2>/dev/null)" = "landspeed $version" ] &&
    start "$found" "$@"
[ "$(uname -m)" = "$machine" ] ||
    refuse "this host is $(uname -m) and the controller's landspeed is for $machine: install it here too" \
        "(in a clone of its repository: make build && cd target/release &&" \
        "sudo install landspeed landspeed-helpers /usr/local/bin)"
# What a login shell printed before may lack its line's end.
start /bin/sh -c 'printf "\n@landspeed script\n"; exec /bin/sh'
