{{/* Refuses what would start a proxy that is open, or none at all. The configuration itself is checked by the proxy. */}}
{{- define "compactproxy.validate" -}}
{{- include "compactproxy.validateConfig" . -}}
{{- include "compactproxy.validateKeys" . -}}
{{- if eq .Values.shape "shared" -}}
{{- include "compactproxy.validateRedis" . -}}
{{- else -}}
{{- include "compactproxy.validateSidecar" . -}}
{{- end -}}
{{- end -}}

{{- define "compactproxy.validateConfig" -}}
{{- $config := .Values.config -}}
{{- if or (hasKey $config "listen") (hasKey $config "admin") -}}
{{- fail "config.listen and config.admin have no effect: the chart sets both listeners" -}}
{{- end -}}
{{- if and $config.upstream $config.upstream.api_key -}}
{{- fail "config.upstream.api_key: a ConfigMap is no place for a key; use upstream.existingSecret or upstream.apiKey" -}}
{{- end -}}
{{- if and $config.summarizer $config.summarizer.api_key -}}
{{- fail "config.summarizer.api_key: a ConfigMap is no place for a key; use config.summarizer.api_key_file, extraVolumes and extraVolumeMounts" -}}
{{- end -}}
{{- if and $config.server $config.server.keys -}}
{{- range $config.server.keys -}}
{{- if .key -}}
{{- fail "config.server.keys: a ConfigMap is no place for a key; use clientKeys.existingSecret or clientKeys.keys" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "compactproxy.validateKeys" -}}
{{- if and .Values.upstream.existingSecret .Values.upstream.apiKey -}}
{{- fail "upstream.existingSecret and upstream.apiKey exclude each other" -}}
{{- end -}}
{{- if and .Values.clientKeys.existingSecret .Values.clientKeys.keys -}}
{{- fail "clientKeys.existingSecret and clientKeys.keys exclude each other" -}}
{{- end -}}
{{- $config := include "compactproxy.config" . | fromYaml -}}
{{- $upstream := and $config.upstream $config.upstream.api_key_file -}}
{{- if and $config.server.keys (not $upstream) -}}
{{- fail "clientKeys need a key for the upstream: set upstream.existingSecret or upstream.apiKey" -}}
{{- end -}}
{{- if and (eq .Values.shape "shared") $upstream (not $config.server.keys) (not $config.server.allow_anonymous) -}}
{{- fail "the proxy would hold the key for the upstream and let everybody spend it: set clientKeys.existingSecret or clientKeys.keys, or allowAnonymous: true" -}}
{{- end -}}
{{- end -}}

{{- define "compactproxy.validateRedis" -}}
{{- $redis := .Values.redis -}}
{{- if $redis.enabled -}}
{{- if and $redis.existingSecret $redis.password -}}
{{- fail "redis.existingSecret and redis.password exclude each other" -}}
{{- end -}}
{{- if not (or $redis.existingSecret $redis.password) -}}
{{- fail "redis.enabled needs redis.existingSecret or redis.password" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "compactproxy.validateSidecar" -}}
{{- if or .Values.redis.enabled .Values.serviceMonitor.enabled -}}
{{- fail "redis.enabled and serviceMonitor.enabled are for the shape shared" -}}
{{- end -}}
{{- $agent := .Values.agent -}}
{{- if $agent.enabled -}}
{{- if not $agent.container -}}
{{- fail "agent.container is required for the shape sidecar: the container of your agent, as in a pod (or agent.enabled: false, for a chart that includes compactproxy.sidecar)" -}}
{{- end -}}
{{- $shutdown := include "compactproxy.shutdownSeconds" . | atoi -}}
{{- if le (int $agent.terminationGracePeriodSeconds) $shutdown -}}
{{- fail (printf "agent.terminationGracePeriodSeconds must be more than config.server.shutdown_timeout (%d s), got %d" $shutdown (int $agent.terminationGracePeriodSeconds)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
