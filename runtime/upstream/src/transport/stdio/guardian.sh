#!/bin/sh
# Ends the processes of servers when the process that started them is gone: then its standard input ends.
#
# Argument: the mark in the environment of everything that comes from a server.
# Input, a line each: `+ group` and `- group` add and remove a process group, `= process` and `~ process` a single
# process. `.` means that nothing is left. What was stopped properly is not listed at the end.
#
# shellcheck disable=SC2086  # lists of ids are split into words
trap '' INT TERM HUP QUIT
mark=$1 groups= single=
without() { rest=; for known in $1; do [ "$known" = "$2" ] || rest="$rest $known"; done; }
while read -r sign id; do
  case $sign in
    +) groups="$groups $id" ;;
    -) without "$groups" "$id"; groups=$rest ;;
    =) single="$single $id" ;;
    '~') without "$single" "$id"; single=$rest ;;
    .) exit 0 ;;
  esac
done
# Finds what has come from the servers: by the mark in the environment, and the descendants of all that is known.
kin() {
  found=" $groups $single "
  for entry in $(grep -lsF "$mark" /proc/[0-9]*/environ); do
    entry=${entry%/environ}
    found="$found${entry#/proc/} "
  done
  grown=1
  while [ "$grown" ]; do
    grown=
    for entry in /proc/[0-9]*; do
      case $found in *" ${entry#/proc/} "*) continue ;; esac
      { read -r line < "$entry/stat"; } 2>/dev/null || continue
      set -- ${line##*) }
      case $found in *" $2 "*) found="$found${entry#/proc/} " grown=1 ;; esac
    done
  done
}
# Sends a signal to the groups on the list and to what was found.
end() {
  for group in $groups; do kill -s "$1" -- "-$group"; done
  for process in $found; do kill -s "$1" -- "$process"; done
}
kin
[ "$(echo $found)" ] || exit 0
end TERM
sleep 1
kin
end KILL
