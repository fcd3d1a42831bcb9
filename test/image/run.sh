#!/usr/bin/env bash
# Builds the Dockerfile with buildah, which needs no daemon, and tries the image in offline.sh. Needs root.
# What comes over a network is fetched here; the rest has none.
set -euo pipefail
cd "$(dirname "$0")/../.."

.ci/install buildah busybox-static ca-certificates iproute2 procps util-linux
.ci/retry go mod download
exec unshare --net test/image/offline.sh
