#!/usr/bin/env bash
# Builds and tries the image in a network namespace of its own, so that its default ports are free and that anything
# that would reach out fails. Started by run.sh, from the root of the repository.
#
# The base image is a stand-in under the same name: the Go toolchain, the downloaded modules and the build cache of this
# machine, mounted into a shell and certificates. So this proves the Dockerfile and the image, not the base image.
set -euo pipefail
ip link set lo up

export BUILDAH_ISOLATION=chroot # needs neither a container runtime nor user namespaces
work=$(mktemp --directory)
image=localhost/compactproxy:test
passed=0

# The images live below the temporary directory, not among those of the user.
buildah() { command buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }

processes() { pgrep --ns $$ --nslist net --exact compactproxy; } # those of this network namespace

cleanup() {
	processes | xargs --no-run-if-empty kill -KILL || true
	buildah umount --all >/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT

# expect WHAT GOT PATTERN...: fails unless lines of what was got match each of the extended regular expressions.
expect() {
	local what=$1 got=$2 pattern
	shift 2
	for pattern in "$@"; do
		if ! grep --quiet --extended-regexp -- "$pattern" <<<"$got"; then
			printf 'image: %s: no line matches "%s" in:\n%s\n' "$what" "$pattern" "$got" >&2
			exit 1
		fi
	done
	echo "ok: $what"
	passed=$((passed + 1))
}

make_base_image() {
	local base
	base=$(buildah from scratch)
	buildah copy --quiet "$base" /bin/busybox /bin/sh >/dev/null
	buildah copy --quiet "$base" /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt >/dev/null
	mkdir --mode=1777 "$work/tmp"
	buildah copy --quiet --chmod 1777 "$base" "$work/tmp" /tmp >/dev/null
	buildah config --env PATH=/usr/local/go/bin:/bin --env GOTOOLCHAIN=local --env GOPATH=/go --env HOME=/root \
		--env GOPROXY=file:///modules --env GOSUMDB=off "$base"
	buildah commit --quiet "$base" docker.io/library/golang:1.26 >/dev/null
}

build_image() {
	buildah bud --quiet --pull-never --format docker \
		--platform "linux/$(go env GOARCH)" --build-arg VERSION=v0.0.0-test --tag "$image" \
		--volume "$(go env GOROOT):/usr/local/go:ro" \
		--volume "$(go env GOMODCACHE)/cache/download:/modules:ro" \
		--volume "$(go env GOCACHE):/root/.cache/go-build" \
		. >/dev/null
}

inspect() { buildah inspect --type image --format "{{$1}}" "$image"; }

check_config() {
	expect 'runs as a numeric user that is not root' "$(inspect .Docker.Config.User)" '^[1-9][0-9]*:[1-9][0-9]*$'
	expect 'starts the binary' "$(inspect .Docker.Config.Entrypoint)" '^\[/compactproxy\]$'
	expect 'has the binary check its health' "$(inspect .Docker.Config.Healthcheck.Test)" '^\[CMD /compactproxy healthcheck\]$'
	expect 'declares its ports' "$(inspect .Docker.Config.ExposedPorts)" '8787/tcp.*9464/tcp'
	expect 'is labelled with its version' "$(inspect '(index .Docker.Config.Labels "org.opencontainers.image.version")')" '^v0.0.0-test$'
	expect 'holds the binary, the certificates and the license only' \
		"$(cd "$root" && find . -type f ! -path './proc/*' ! -path './sys/*' ! -path './dev/*' | sort | paste -sd ' ')" \
		'^\./LICENSE \./compactproxy \./etc/ssl/certs/ca-certificates\.crt$'
	expect 'has no place that its user may write to' \
		"$(find "$root" -xdev -type d \( -perm -o=w -o -uid 65532 \) | wc -l)" '^0$'
	expect 'is statically linked' "$(ldd "$root/compactproxy" 2>&1 || true)" 'not a dynamic executable'
}

# run ARGUMENT...: the binary as the image's user and with its environment; prints its output, then its exit status.
run() { buildah run "$container" -- /compactproxy "$@" 2>&1 && echo 'status 0' || echo "status $?"; }

check_commands() {
	expect 'version' "$(run version)" 'v0\.0\.0-test' '^status 0$'
	expect 'check' "$(run check)" '^status 0$'
	expect 'healthcheck fails while nothing is served' "$(run healthcheck)" '^status 1$'
	expect 'demo, without a network' "$(run demo)" 'context_length_exceeded' '^status 0$'
}

check_serve() {
	run serve >"$work/log" &
	local server=$!
	for _ in $(seq 50); do
		if run healthcheck | grep --quiet '^status 0$'; then break; fi
		sleep 0.2
	done
	expect 'healthcheck passes once it serves' "$(run healthcheck)" '^status 0$'
	expect 'is no root process' "$(ps -o uid= -p "$(processes)")" '^ *65532$'
	expect 'metrics' "$(busybox wget -q -O - http://127.0.0.1:9464/metrics)" '^compactproxy_build_info'
	expect 'listens on all addresses' "$(busybox netstat -ltn)" '(0\.0\.0\.0|::):8787'
	kill -TERM "$(processes)"
	wait "$server"
	expect 'stops at SIGTERM' "$(<"$work/log")" '^status 0$'
}

# read_only ARGUMENT...: as run, on a root that nobody can write to, as docker run --read-only has it.
read_only() {
	unshare --mount sh -euc 'root=$1; shift
		mount --bind "$root" "$root"
		mount -o remount,bind,ro "$root"
		if touch "$root/written" 2>/dev/null; then echo "the root is writable"; exit 99; fi
		exec chroot --userspec=65532:65532 "$root" /compactproxy "$@"' sh "$root" "$@" 2>&1 && echo 'status 0' || echo "status $?"
}

check_read_only() {
	export COMPACTPROXY_LISTEN=0.0.0.0:8787 COMPACTPROXY_ADMIN_LISTEN=0.0.0.0:9464
	read_only serve >"$work/log" &
	local server=$!
	for _ in $(seq 50); do
		if read_only healthcheck | grep --quiet '^status 0$'; then break; fi
		sleep 0.2
	done
	expect 'healthcheck passes on a read-only root' "$(read_only healthcheck)" '^status 0$'
	kill -TERM "$(processes)"
	wait "$server"
	expect 'stops at SIGTERM on a read-only root' "$(<"$work/log")" '^status 0$'
}

make_base_image
build_image
container=$(buildah from --pull-never "$image")
root=$(buildah mount "$container")
check_config
check_commands
check_serve
check_read_only
echo "image: $(du --human-readable "$root/compactproxy" | cut --fields 1) binary"
echo "$passed passed, 0 failed"
