{{/* The parts of the proxy's container that both shapes have. */}}
{{- define "compactproxy.containerSecurityContext" -}}
runAsNonRoot: true
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "compactproxy.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "compactproxy.probes" -}}
startupProbe:
  httpGet:
    path: /readyz
    port: metrics
  periodSeconds: 1
  failureThreshold: 30
readinessProbe:
  httpGet:
    path: /readyz
    port: metrics
  periodSeconds: 5
livenessProbe:
  httpGet:
    path: /healthz
    port: metrics
  periodSeconds: 10
  timeoutSeconds: 5
{{- end -}}

{{/* resources, securityContext and volumeMounts. */}}
{{- define "compactproxy.containerEnd" -}}
resources:
  {{- default (include "compactproxy.shapeDefaults" . | fromYaml).resources .Values.resources | toYaml | nindent 2 }}
securityContext:
  {{- include "compactproxy.containerSecurityContext" . | nindent 2 }}
volumeMounts:
  - name: compactproxy-config
    mountPath: /etc/compactproxy
    readOnly: true
  {{- if or (include "compactproxy.upstreamSecret" .) (include "compactproxy.clientKeysSecret" .) }}
  - name: compactproxy-secrets
    mountPath: /run/secrets/compactproxy
    readOnly: true
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "compactproxy.memoryEnv" -}}
{{- $limit := .Values.goMemLimit -}}
{{- if and (not $limit) (not .Values.resources) -}}
{{- $limit = (include "compactproxy.shapeDefaults" . | fromYaml).goMemLimit -}}
{{- end -}}
{{- with $limit -}}
- name: GOMEMLIMIT
  value: {{ . | quote }}
{{- end -}}
{{- end -}}

{{/* The volumes of the proxy's container, a list. */}}
{{- define "compactproxy.volumes" -}}
{{- $upstream := include "compactproxy.upstreamSecret" . -}}
{{- $clients := include "compactproxy.clientKeysSecret" . -}}
- name: compactproxy-config
  configMap:
    name: {{ include "compactproxy.fullname" . }}
{{- if or $upstream $clients }}
- name: compactproxy-secrets
  projected:
    defaultMode: 288    # 0440: not for others
    sources:
      {{- if $upstream }}
      - secret:
          name: {{ $upstream }}
          items:
            - key: {{ ternary .Values.upstream.existingSecretKey "upstream-api-key" (not (empty .Values.upstream.existingSecret)) }}
              path: upstream-api-key
      {{- end }}
      {{- if $clients }}
      - secret:
          name: {{ $clients }}
          items:
            - key: {{ ternary .Values.clientKeys.existingSecretKey "client-keys" (not (empty .Values.clientKeys.existingSecret)) }}
              path: client-keys
      {{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
