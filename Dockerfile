# Build with: docker build --build-arg VERSION=$(git describe --tags --always) -t compactproxy .
# The compiler runs on the builder's own platform and cross-compiles, so that other platforms need no emulation.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/compactproxy ./cmd/compactproxy

# scratch rather than distroless: the static binary needs certificates and nothing else, not even a writable file system.
# What these lines copy is all there is to trust, to scan and to update.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/compactproxy /compactproxy
COPY LICENSE /LICENSE

ARG VERSION=dev
LABEL org.opencontainers.image.title="compactproxy" \
      org.opencontainers.image.description="OpenAI-compatible proxy that shortens long conversations" \
      org.opencontainers.image.source="https://github.com/compactproxy/compactproxy" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"

# Loopback, the default elsewhere, could not be reached from outside the container.
ENV COMPACTPROXY_LISTEN=0.0.0.0:8787 \
    COMPACTPROXY_ADMIN_LISTEN=0.0.0.0:9464
EXPOSE 8787 9464

# By number, so that Kubernetes can tell that it is not root (runAsNonRoot).
USER 65532:65532
ENTRYPOINT ["/compactproxy"]
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 CMD ["/compactproxy", "healthcheck"]
