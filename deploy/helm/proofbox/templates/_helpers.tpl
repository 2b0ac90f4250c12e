{{- define "proofbox.name" -}}
{{- default .Release.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "proofbox.selector" -}}
app.kubernetes.io/name: proofbox
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "proofbox.labels" -}}
{{ include "proofbox.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "proofbox.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}

{{- define "proofbox.unprivileged" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "proofbox.mounts" -}}
- {name: data, mountPath: /var/lib/proofbox}
- {name: config, mountPath: /etc/proofbox, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- if .Values.secretName }}
- {name: secrets, mountPath: /run/secrets/proofbox, readOnly: true}
{{- end }}
{{- if eq .Values.engine.mode "sidecar" }}
- {name: engine-proxy, mountPath: /run/proofbox-engine}
{{- else }}
- {name: engine-tls, mountPath: /run/engine-tls, readOnly: true}
{{- end }}
{{- end -}}

{{- define "proofbox.environment" -}}
- {name: PROOFBOX_CONFIG, value: /etc/proofbox/proofbox.toml}
- {name: PROOFBOX_IMAGE, value: {{ .Values.sandboxImage | quote }}}
{{- if eq .Values.engine.mode "sidecar" }}
- {name: PROOFBOX_ENGINE_HOST, value: "unix:///run/proofbox-engine/engine.sock"}
{{- else }}
- {name: DOCKER_HOST, value: {{ .Values.engine.remote.host | quote }}}
- {name: DOCKER_TLS_VERIFY, value: "1"}
- {name: DOCKER_CERT_PATH, value: /run/engine-tls}
{{- end }}
{{- end -}}
