#!/bin/sh
# Real objects to try things on: Debian's static archives for both machines, and sources.
# Usage: corpora.sh DIRECTORY [archives|sources|projects|python]...
#
# Everything lands in DIRECTORY (amd64/ and arm64/ as unpacked packages, src/ as unpacked
# source packages); apt keeps its state there too, so that the system stays as it is.
# What is there already is not fetched again.
set -eu
root=$1
shift
mkdir -p "$root"
root=$(cd "$root" && pwd)

archives="libc6-dev libstdc++-12-dev libgcc-12-dev libsqlite3-dev liblua5.4-dev zlib1g-dev
          libssl-dev libgmp-dev"
sources="lua5.4 zlib mbedtls sqlite3 bzip2 cjson libpng1.6 tinyxml2 fmtlib"
projects="$sources libjsoncpp re2 rust-ripgrep" # built by their own build systems
python="libpython3.11-dev libexpat1-dev zlib1g-dev"
python_library="libpython3.11-minimal libpython3.11-stdlib libpython3.11-testsuite"

# An apt of our own for one architecture: the system's sources, with deb-src.
apt() {
    arch=$1
    shift
    state=$root/apt/$arch
    if [ ! -d "$state" ]; then
        mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/parts"
        for list in /etc/apt/sources.list.d/debian.sources; do
            [ -f "$list" ] && sed 's/^Types:.*/Types: deb deb-src/' "$list" \
                >"$state/parts/debian.sources"
        done
        : >"$state/status"
        if [ -s /etc/apt/sources.list ]; then
            sed -n 's/^deb \(.*\)/deb \1\ndeb-src \1/p' /etc/apt/sources.list \
                >"$state/sources.list"
        else
            : >"$state/sources.list"
        fi
        apt_with "$arch" update -qq
    fi
    apt_with "$arch" "$@"
}

apt_with() {
    arch=$1
    shift
    command=apt-get
    [ "$1" != showsrc ] || command=apt-cache
    state=$root/apt/$arch
    $command -o APT::Architecture="$arch" -o APT::Architectures="$arch" \
        -o APT::Sandbox::User=root \
        -o Dir::State="$state" -o Dir::State::lists="$state/lists" \
        -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
        -o Dir::Etc::sourcelist="$state/sources.list" \
        -o Dir::Etc::sourceparts="$state/parts" "$@"
}

fetch_packages() {
    arch=$1
    shift
    for package in "$@"; do
        [ -f "$root/$arch/.$package" ] && continue
        mkdir -p "$root/$arch" "$root/deb"
        (cd "$root/deb" && rm -f "$package"_*_"$arch".deb "$package"_*_all.deb &&
            apt "$arch" download -qq "$package")
        for file in "$root/deb/$package"_*_"$arch".deb "$root/deb/$package"_*_all.deb; do
            [ -f "$file" ] && dpkg -x "$file" "$root/$arch"
        done
        : >"$root/$arch/.$package"
    done
}

fetch_archives() {
    # shellcheck disable=SC2086
    for arch in amd64 arm64; do
        fetch_packages "$arch" $archives
    done
}

# The interpreter's library for both machines, its modules and tests for one.
fetch_python() {
    # shellcheck disable=SC2086
    for arch in amd64 arm64; do
        fetch_packages "$arch" $python
    done
    # shellcheck disable=SC2086
    fetch_packages amd64 $python_library
}

# A security update may be listed and not be there; then the release's own will do.
fetch_source() {
    (cd "$root/src" && apt amd64 source -qq "$1" 2>/dev/null >/dev/null ||
        for version in $(apt amd64 showsrc "$1" | sed -n 's/^Version: //p'); do
            apt amd64 source -qq "$1=$version" >/dev/null && break
        done)
}

fetch_sources() {
    mkdir -p "$root/src"
    for package in $sources; do
        [ -f "$root/src/.$package" ] && continue
        fetch_source "$package"
        : >"$root/src/.$package"
    done
}

fetch_projects() {
    sources=$projects
    fetch_sources
}

[ $# -gt 0 ] || set -- archives
for what in "$@"; do
    "fetch_$what"
done
