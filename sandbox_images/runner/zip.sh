#!/bin/bash
# zip, which follows links, without those of the working directory that lead to itself: each file is in an archive once.
links=() words=() excluded=()
for link in files attachments turn_*; do
  [ -L "$link" ] && links+=("$link")
done
for word in "$@"; do
  for link in "${links[@]}"; do
    [ "$word" = "$link" ] && word=$link/
    case $word in
      "$link"/*) for other in "${links[@]}"; do excluded+=("$link/$other"); done ;;
    esac
  done
  words+=("$word")
done
[ ${#links[@]} = 0 ] && exec /usr/bin/zip "$@"
exec /usr/bin/zip -y "${words[@]}" -x "${links[@]}" "${excluded[@]}"
