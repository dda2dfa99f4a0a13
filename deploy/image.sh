#!/usr/bin/env bash
# Builds the image of the portal from the files that git tracks, as they are now: `make image`.
#
#   build/image/image.tar       an OCI archive: skopeo copy oci-archive:build/image/image.tar docker://registry.example.com/gpu-portal:VERSION
#   build/image/sbom.cdx.json   the packages in it (CycloneDX), which are in the image too
#
# BASE is another base image; BASE=debian is one of Debian's packages made here, where no registry of images is reached.
# SOURCE is a folder to build from instead. BUILD_OPTIONS are handed to buildah. Where pip of this machine has settings, pip of the build has them too.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v buildah > /dev/null; then
    echo "make image needs buildah (apt-get install buildah; dnf install buildah). Docker builds the same image:" >&2
    echo "  docker build -f deploy/Dockerfile -t gpu-portal ." >&2
    exit 1
fi
export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot} STORAGE_DRIVER=${STORAGE_DRIVER:-vfs}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
image=localhost/gpu-portal:$version
out=build/image
umask 022
rm -rf "$out"
mkdir -p "$out/context"
trap 'rm -rf "$out/context" "$out/layout"' EXIT
if [ -n "${SOURCE:-}" ]; then
    cp -r "$SOURCE/." "$out/context"
else
    git ls-files -z | tar --create --null --files-from=- | tar --extract --directory="$out/context" --no-same-owner
fi

base=${BASE:-}
if [ "$base" = debian ]; then
    base=localhost/gpu-portal-base
    if ! buildah inspect --type image "$base" > /dev/null 2>&1; then
        mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$out/base.tar"
        container=$(buildah from scratch)
        buildah add --quiet "$container" "$out/base.tar" /
        buildah commit --quiet --rm --timestamp "$SOURCE_DATE_EPOCH" "$container" "$base"
        rm "$out/base.tar"
    fi
fi

options=(--build-arg "VERSION=$version" --build-arg "REVISION=$(git rev-parse HEAD)"
    --build-arg "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH" --timestamp "$SOURCE_DATE_EPOCH")
[ -z "$base" ] || options+=(--build-arg "BASE=$base")
for settings in /etc/pip.conf /etc/ssl/certs; do
    [ ! -e "$settings" ] || options+=(--volume "$settings:$settings:ro")
done
read -ra more <<< "${BUILD_OPTIONS:-}"
buildah build --quiet "${options[@]}" "${more[@]}" --file deploy/Dockerfile --tag "$image" "$out/context"

container=$(buildah from --pull-never "$image")
buildah run "$container" cat /app/sbom.cdx.json > "$out/sbom.cdx.json"
buildah rm "$container" > /dev/null
buildah push --quiet "$image" "oci:$out/layout:gpu-portal:$version"
tar --create --file="$out/image.tar" --directory="$out/layout" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
    --numeric-owner .
echo "$image: $out/image.tar, $(($(stat --format=%s "$out/image.tar") / 1048576)) MiB; its packages are in $out/sbom.cdx.json"
