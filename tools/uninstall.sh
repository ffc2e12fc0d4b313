#!/usr/bin/env bash
# Removes the files that `make install` listed, and the folders that are empty then.
#   tools/uninstall.sh build/install_manifest.txt [DESTDIR]
set -euo pipefail

manifest=$1 below=${2:-}
if [ ! -f "$manifest" ]; then
    echo "uninstall: $manifest not found: nothing was installed from this folder" >&2
    exit 1
fi
count=0
while IFS= read -r path || [ -n "$path" ]; do
    [ -n "$path" ] || continue
    rm -f -- "$below$path"
    count=$((count + 1))
    folder=$(dirname "$below$path")
    while [ "$folder" != / ] && [ "$folder" != "$below" ] && rmdir -- "$folder" 2>/dev/null; do
        folder=$(dirname "$folder")
    done
done <"$manifest"
rm -f -- "$manifest"
echo "uninstall: $count files removed"
