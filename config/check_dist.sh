#!/bin/bash
# check_dist.sh SOURCE FOLDER: make dist of the last commit of SOURCE in two clones that differ in folder, umask, time,
# language and the files that lie about: the same archive, byte for byte, with all that git has. Its content makes the
# same archive once more.
set -u
source=$(cd "$1" && pwd) && rm -rf "$2" && mkdir -p "$2" && folder=$(cd "$2" && pwd) || exit 1
passed=0 failed=0
verdict()
{
    if [ "$1" = 0 ]; then
        echo "ok    $2"
        passed=$((passed + 1))
    else
        echo "FAIL  $2"
        tail -n 15 "$folder/log" | sed 's/^/    | /'
        failed=$((failed + 1))
    fi
}

# pack TREE: the archive of a tree. Its content does not depend on what configure finds.
pack()
{
    (cd "$1" && { [ -x configure ] || ./autogen.sh; } && mkdir build && cd build &&
        ../configure --without-ompi --without-cuda && make dist) >"$folder/log" 2>&1 && archive=$(echo "$1"/build/*.tar.xz)
}

(umask 022 && git clone -q "$source" "$folder/one") && (umask 002 && git clone -q "$source" "$folder/other") || exit 1
mkdir -p "$folder/other/examples/horovod/__pycache__" && echo junk >"$folder/other/examples/horovod/__pycache__/junk.pyc"
find "$folder/other" -name '*.md' -exec touch {} +
umask 022
pack "$folder/one"
verdict $? 'make dist'
first=$archive
umask 002
LC_ALL=C TZ=Asia/Tokyo pack "$folder/other"
verdict $? 'make dist, elsewhere'
cmp "$first" "$archive" >"$folder/log" 2>&1
verdict $? 'the same bytes'

tar -xf "$first" -C "$folder"
release=$folder/$(basename "$first" .tar.xz)
(cd "$folder/one" && git ls-files | grep -vE '(^|/)\.(gitignore|keep)$' | sort) >"$folder/wanted"
(cd "$release" && find . -type f | sed 's,^\./,,' | sort) >"$folder/there"
comm -23 "$folder/wanted" "$folder/there" >"$folder/log"
[ ! -s "$folder/log" ]
verdict $? 'nothing that git has is missing'
comm -13 "$folder/wanted" "$folder/there" | grep -vE '^(config/autotools/|Makefile\.in$|aclocal\.m4$|configure$)' >"$folder/log"
[ ! -s "$folder/log" ]
verdict $? 'and nothing is there beside what autogen.sh makes'

git init -q "$folder" # a release in the repository of something else
pack "$release"
verdict $? 'a release makes a release'
cmp "$first" "$archive" >"$folder/log" 2>&1
verdict $? 'the same bytes again'
make -C "$release/build" measure/commit.h >"$folder/log" 2>&1 && grep -q '"release ' "$release/build/measure/commit.h"
verdict $? 'it does not take the commit of something else for its own'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
