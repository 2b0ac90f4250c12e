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
{{- if ne .role "all" }}
- {name: keys, mountPath: /run/proofbox-keys}
{{- end }}
{{- if include "proofbox.sidecar" . }}
- {name: engine-proxy, mountPath: /run/proofbox-engine}
{{- end }}
{{- if include "proofbox.remoteEngine" . }}
- {name: engine-tls, mountPath: /run/engine-tls, readOnly: true}
{{- end }}
{{- end -}}

{{- define "proofbox.environment" -}}
- {name: PROOFBOX_CONFIG, value: /etc/proofbox/proofbox.toml}
- {name: PROOFBOX_IMAGE, value: {{ .Values.sandboxImage | quote }}}
{{- if ne .role "all" }}
- {name: PROOFBOX_DISPATCH, value: nats}
- {name: PROOFBOX_ROLE, value: {{ .role }}}
- {name: PROOFBOX_NATS_URLS, value: {{ .Values.dispatch.nats.urls | quote }}}
- {name: PROOFBOX_NATS_PREFIX, value: {{ .Values.dispatch.nats.prefix | quote }}}
- {name: PROOFBOX_KEYS_DIR, value: /run/proofbox-keys}
{{- end }}
{{- if eq .role "worker" }}
- {name: PROOFBOX_RUNNING_MAX, value: {{ .Values.dispatch.worker.slots | quote }}}
- {name: PROOFBOX_SHUTDOWN_GRACE_S, value: {{ .Values.dispatch.worker.graceS | quote }}}
{{- end }}
{{- if include "proofbox.sidecar" . }}
- {name: PROOFBOX_ENGINE_HOST, value: "unix:///run/proofbox-engine/engine.sock"}
{{- end }}
{{- if include "proofbox.remoteEngine" . }}
- {name: DOCKER_HOST, value: {{ .Values.engine.remote.host | quote }}}
- {name: DOCKER_TLS_VERIFY, value: "1"}
- {name: DOCKER_CERT_PATH, value: /run/engine-tls}
{{- end }}
{{- end -}}

{{/* Whether the pod has an engine of its own, and whether it uses one elsewhere: API processes run no programs. */}}
{{- define "proofbox.sidecar" -}}
{{- if and (ne .role "api") (eq .Values.engine.mode "sidecar") }}true{{ end -}}
{{- end -}}

{{- define "proofbox.remoteEngine" -}}
{{- if and (ne .role "api") (eq .Values.engine.mode "remote") }}true{{ end -}}
{{- end -}}
