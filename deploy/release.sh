#!/usr/bin/env bash
# Builds a release of the commit that is checked out into build/release: wheel, image, chart, SBOM and SHA256SUMS.
#
# What was built of the same commit before has to have the same sums: `make release` twice says whether a release can be
# made again. Variables of deploy/image.sh hold here too.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! git diff --quiet HEAD || [ -n "$(git ls-files --others --exclude-standard)" ]; then
    echo "A release is of a commit: commit or stash what git status shows." >&2
    exit 1
fi
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
python=$PWD/.venv/bin/python
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
out=$PWD/build/release
before=$(cat "$out/SHA256SUMS" 2> /dev/null || true)
[ "$(cat "$out/COMMIT" 2> /dev/null || true)" = "$commit" ] || before=
umask 022
rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive HEAD | tar --extract --directory="$work"

"$python" -m deploy.delivery.chart --source="$work/deploy/chart" --out="$out"
SOURCE=$work deploy/image.sh
(cd "$work" && "$python" -c "from setuptools import build_meta; build_meta.build_wheel('$out')" > "$work/wheel.log")
cp build/image/image.tar "$out/gpu-portal-image-$version.tar"
cp build/image/sbom.cdx.json "$out/gpu-portal-image-$version.cdx.json"

(cd "$out" && sha256sum -- gpu* > SHA256SUMS && cat SHA256SUMS)
echo "$commit" > "$out/COMMIT"
if [ -n "$before" ]; then
    diff <(echo "$before") "$out/SHA256SUMS" || { echo "Built twice, the release differs." >&2; exit 1; }
    echo "The same sums as before."
fi
