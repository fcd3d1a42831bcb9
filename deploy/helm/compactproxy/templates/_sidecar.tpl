{{/*
The proxy as a native sidecar: an entry of initContainers. Another chart that has this one as a dependency, with
`shape: sidecar` and `agent: {enabled: false}`, writes into its pod

  initContainers:
    {{- include "compactproxy.sidecar" .Subcharts.compactproxy | nindent 4 }}
  volumes:
    {{- include "compactproxy.volumes" .Subcharts.compactproxy | nindent 4 }}

and enableServiceLinks: false, an fsGroup, and OPENAI_BASE_URL=http://127.0.0.1:8787/v1 for the agent.
*/}}
{{- define "compactproxy.sidecar" -}}
- name: compactproxy
  image: {{ include "compactproxy.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  restartPolicy: Always    # this makes it a sidecar
  env:
    # The image listens on all addresses. In the agent's pod loopback is enough, and nobody else gets in.
    - name: COMPACTPROXY_LISTEN
      value: "127.0.0.1:8787"
    - name: COMPACTPROXY_ADMIN_LISTEN
      value: "0.0.0.0:9464"
    {{- with include "compactproxy.memoryEnv" . }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .Values.extraEnv }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - name: metrics
      containerPort: 9464
  {{- include "compactproxy.probes" . | nindent 2 }}
  {{- include "compactproxy.containerEnd" . | nindent 2 }}
{{- end -}}
