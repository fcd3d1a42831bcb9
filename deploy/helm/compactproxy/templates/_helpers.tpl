{{- define "compactproxy.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* 50 characters leave room for the endings of other objects. */}}
{{- define "compactproxy.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "compactproxy.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "compactproxy.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "compactproxy.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ include "compactproxy.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Labels of the proxy's own objects. */}}
{{- define "compactproxy.labels" -}}
{{ include "compactproxy.commonLabels" . }}
app.kubernetes.io/component: proxy
{{- end -}}

{{- define "compactproxy.selectorLabels" -}}
app.kubernetes.io/name: {{ include "compactproxy.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: proxy
{{- end -}}

{{- define "compactproxy.redisSelectorLabels" -}}
app.kubernetes.io/name: {{ include "compactproxy.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: redis
{{- end -}}

{{- define "compactproxy.image" -}}
{{- $repository := required "image.repository is required: there is no published image; build the Dockerfile and push the image to a registry of yours" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* What differs between the shapes where the values say nothing. */}}
{{- define "compactproxy.shapeDefaults" -}}
{{- if eq .Values.shape "shared" -}}
shutdownTimeout: 10m
maxBufferedBytes: 268435456
goMemLimit: 900MiB
resources: {requests: {cpu: 500m, memory: 256Mi}, limits: {memory: 1Gi}}
{{- else -}}
shutdownTimeout: 10s
maxBufferedBytes: 134217728
goMemLimit: 450MiB
resources: {requests: {cpu: 50m, memory: 96Mi}, limits: {memory: 512Mi}}
{{- end -}}
{{- end -}}

{{/* Empty where there is none. */}}
{{- define "compactproxy.upstreamSecret" -}}
{{- if .Values.upstream.existingSecret -}}
{{- .Values.upstream.existingSecret -}}
{{- else if .Values.upstream.apiKey -}}
{{- include "compactproxy.fullname" . -}}
{{- end -}}
{{- end -}}

{{- define "compactproxy.clientKeysSecret" -}}
{{- if .Values.clientKeys.existingSecret -}}
{{- .Values.clientKeys.existingSecret -}}
{{- else if .Values.clientKeys.keys -}}
{{- include "compactproxy.fullname" . -}}
{{- end -}}
{{- end -}}

{{- define "compactproxy.redisSecret" -}}
{{- default (include "compactproxy.fullname" .) .Values.redis.existingSecret -}}
{{- end -}}

{{/* The configuration file: the value config, and what follows from other values. What config says wins. */}}
{{- define "compactproxy.config" -}}
{{- $defaults := include "compactproxy.shapeDefaults" . | fromYaml -}}
{{- $server := dict "shutdown_timeout" $defaults.shutdownTimeout "max_buffered_bytes" $defaults.maxBufferedBytes -}}
{{- $added := dict "server" $server -}}
{{- if include "compactproxy.upstreamSecret" . -}}
{{- $_ := set $added "upstream" (dict "api_key_file" "/run/secrets/compactproxy/upstream-api-key") -}}
{{- end -}}
{{- if include "compactproxy.clientKeysSecret" . -}}
{{- $_ := set $server "keys" (list (dict "name" .Values.clientKeys.name "key_file" "/run/secrets/compactproxy/client-keys")) -}}
{{- end -}}
{{- if .Values.allowAnonymous -}}
{{- $_ := set $server "allow_anonymous" true -}}
{{- end -}}
{{- if and (eq .Values.shape "shared") .Values.redis.enabled -}}
{{- $_ := set $added "store" (dict "type" "redis") -}}
{{- end -}}
{{- mergeOverwrite $added (deepCopy .Values.config) | toYaml -}}
{{- end -}}

{{/* server.shutdown_timeout in seconds. */}}
{{- define "compactproxy.shutdownSeconds" -}}
{{- $text := (include "compactproxy.config" . | fromYaml).server.shutdown_timeout | toString -}}
{{- if not (regexMatch "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$" $text) -}}
{{- fail (printf "config.server.shutdown_timeout: write it in whole hours, minutes and seconds, such as 10m or 90s, got %s" $text) -}}
{{- end -}}
{{- $seconds := 0 -}}
{{- range regexFindAll "[0-9]+[hms]" $text -1 -}}
{{- $number := regexFind "[0-9]+" . | atoi -}}
{{- $seconds = add $seconds (mul $number (get (dict "h" 3600 "m" 60 "s" 1) (regexFind "[hms]" .))) -}}
{{- end -}}
{{- $seconds -}}
{{- end -}}

{{/* terminationGracePeriodSeconds of the shape shared. */}}
{{- define "compactproxy.graceSeconds" -}}
{{- $needed := add .Values.preStopSleepSeconds (include "compactproxy.shutdownSeconds" . | atoi) -}}
{{- if kindIs "invalid" .Values.terminationGracePeriodSeconds -}}
{{- add $needed 15 -}}
{{- else if le (int64 .Values.terminationGracePeriodSeconds) $needed -}}
{{- fail (printf "terminationGracePeriodSeconds must be more than preStopSleepSeconds and config.server.shutdown_timeout together (%d s), got %d" $needed (int64 .Values.terminationGracePeriodSeconds)) -}}
{{- else -}}
{{- int64 .Values.terminationGracePeriodSeconds -}}
{{- end -}}
{{- end -}}
