#!/bin/sh
# Fills a folder with what the cross build for aarch64 compiles against and runs with: Debian's arm64 Python 3.11 and
# its libraries, and the Python packages of the tests. Nothing is installed on the machine itself.
#
#     cmake/aarch64_sysroot.sh FOLDER

set -eu

root=$1
work=$root/.download
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/debs" "$work/wheels"

apt_arm64() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::lists="$work/lists" \
    -o Dir::State::status=/dev/null -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root "$@"
}

apt_arm64 update
(cd "$work/debs" && apt_arm64 download libc6 libgcc-s1 libstdc++6 libgomp1 libexpat1 zlib1g libssl3 libffi8 \
  libbz2-1.0 liblzma5 libsqlite3-0 libuuid1 libcrypt1 python3.11-minimal python3.11 libpython3.11-minimal \
  libpython3.11-stdlib libpython3.11-dev)
for package in "$work"/debs/*.deb; do
  dpkg-deb -x "$package" "$root"
done

site=$root/usr/lib/python3/dist-packages
mkdir -p "$site"
python3 -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.11 --dest "$work/wheels" \
  --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 \
  numpy pytest pytest-timeout pluggy iniconfig packaging pygments scipy-openblas32==0.3.34.481.3
for wheel in "$work"/wheels/*.whl; do
  python3 -m zipfile -e "$wheel" "$site"
done
rm -rf "$work"
touch "$root/.complete"
