#!/bin/sh
# check_versions.sh: configure.ac has the version. Whatever has to repeat it (the list of changes, recipes of packages)
# repeats that one.
set -u
cd "${HETCOLL_SRCDIR:-.}" || exit 1
version=$(sed -n 's/^AC_INIT(\[hetcoll\], \[\([^]]*\)\].*/\1/p' configure.ac)
failures=0
[ -n "$version" ] || { echo "FAIL  configure.ac has no AC_INIT with a version"; exit 1; }

# same FILE PATTERN: what sed's PATTERN finds first in FILE is the version.
same()
{
    found=$(sed -n "s/$2/\1/p" "$1" | head -n 1)
    if [ "$found" = "$version" ]; then
        echo "ok    $1: $version"
    else
        echo "FAIL  $1 says '$found', configure.ac '$version'"
        failures=$((failures + 1))
    fi
}

same CHANGELOG.md '^## \([0-9.]*\).*'
same packaging/debian/changelog '^hetcoll (\([0-9.]*\)-[0-9]*).*'
same packaging/spack/package.py '^    version("\([0-9.]*\)".*'
for recipe in packaging/easybuild/*.eb; do
    same "$recipe" "^version = '\([0-9.]*\)'"
done
same packaging/conda/recipe.yaml '^  version: "\([0-9.]*\)"'
[ "$failures" -eq 0 ]
