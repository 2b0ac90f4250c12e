{{/* The pod of a process. The context is the one of the chart, with `role`: all, api or worker. */}}
{{- define "proofbox.pod" -}}
automountServiceAccountToken: false
# Or Kubernetes would set PROOFBOX_PORT and others, which are no settings.
enableServiceLinks: false
terminationGracePeriodSeconds: {{ if eq .role "worker" }}{{ add .Values.dispatch.worker.graceS 20 }}{{ else }}40{{ end }}
securityContext: {fsGroup: 10002, fsGroupChangePolicy: OnRootMismatch}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if or (include "proofbox.sidecar" .) .Values.firstKey (ne .role "all") }}
initContainers:
  {{- if ne .role "all" }}
  # Copied, because files of a Secret can be read by their group, and the service uses no keys that others can read.
  - name: keys
    image: {{ include "proofbox.image" . | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    command: [/bin/sh, -ec, "umask 077; cp /run/secrets/proofbox-keys/* /run/proofbox-keys/"]
    securityContext:
      {{- include "proofbox.unprivileged" . | nindent 6 }}
      runAsUser: 10002
      runAsGroup: 10002
    volumeMounts:
      - {name: secret-keys, mountPath: /run/secrets/proofbox-keys, readOnly: true}
      - {name: keys, mountPath: /run/proofbox-keys}
  {{- end }}
  {{- if include "proofbox.sidecar" . }}
  - name: engine
    image: {{ .Values.engine.sidecar.image | quote }}
    restartPolicy: Always
    # The socket is for root and the group 10002; of those in it, only the proxy mounts this folder.
    command: [/bin/sh, -ec]
    args:
      - |
        dockerd-entrypoint.sh dockerd --host=unix:///run/docker/docker.sock --group=10002 --iptables=false --bridge=none &
        until docker info >/dev/null 2>&1; do sleep 0.5; done
        docker image inspect "$SANDBOX_IMAGE" >/dev/null 2>&1 || until docker pull --quiet "$SANDBOX_IMAGE"; do sleep 5; done
        wait
    env:
      - {name: DOCKER_HOST, value: "unix:///run/docker/docker.sock"}
      - {name: DOCKER_TLS_CERTDIR, value: ""}
      - {name: SANDBOX_IMAGE, value: {{ .Values.sandboxImage | quote }}}
    securityContext: {privileged: true}
    startupProbe:
      exec: {command: [/bin/sh, -c, 'docker image inspect "$SANDBOX_IMAGE"']}
      periodSeconds: 2
      timeoutSeconds: 5
      failureThreshold: 300
    livenessProbe:
      exec: {command: [docker, info]}
      periodSeconds: 20
      timeoutSeconds: 10
    resources: {{- toYaml .Values.engine.sidecar.resources | nindent 6 }}
    volumeMounts:
      - {name: engine, mountPath: /run/docker}
      - {name: engine-storage, mountPath: /var/lib/docker}
  - name: engine-proxy
    image: {{ .Values.engine.proxy.image | quote }}
    restartPolicy: Always
    args: [haproxy, -db, -f, /etc/proofbox/haproxy.cfg]
    env:
      - {name: PROOFBOX_DOCKER_SOCKET, value: /run/docker/docker.sock}
      - {name: PROOFBOX_PROXY_SOCKET, value: /run/proofbox-engine/engine.sock}
    securityContext:
      {{- include "proofbox.unprivileged" . | nindent 6 }}
      runAsUser: 99
      runAsGroup: 10002
    volumeMounts:
      - {name: config, mountPath: /etc/proofbox, readOnly: true}
      - {name: engine, mountPath: /run/docker}
      - {name: engine-proxy, mountPath: /run/proofbox-engine}
  {{- end }}
  {{- if and .Values.firstKey (eq .role "all") }}
  - name: first-key
    image: {{ include "proofbox.image" . | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    command: [/bin/sh, -ec]
    args:
      - |
        {{- include "proofbox.firstKey" . | nindent 8 }}
    env: {{- include "proofbox.environment" . | nindent 6 }}
    securityContext:
      {{- include "proofbox.unprivileged" . | nindent 6 }}
      runAsUser: 10002
      runAsGroup: 10002
    volumeMounts: {{- include "proofbox.mounts" . | nindent 6 }}
  {{- end }}
{{- end }}
containers:
  - name: proofbox
    image: {{ include "proofbox.image" . | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [serve, --host, 0.0.0.0, --port, "8080"]
    env: {{- include "proofbox.environment" . | nindent 6 }}
    ports:
      - {name: http, containerPort: 8080}
    securityContext:
      {{- include "proofbox.unprivileged" . | nindent 6 }}
      runAsUser: 10002
      runAsGroup: 10002
    {{- if eq .role "api" }}
    # Until the service knows that the pod ends, requests still come.
    lifecycle:
      preStop: {exec: {command: [sleep, "5"]}}
    {{- end }}
    # The first process of a release with a new schema migrates it before it answers.
    startupProbe:
      httpGet: {path: /livez, port: http}
      periodSeconds: 1
      failureThreshold: {{ .Values.startupS }}
    livenessProbe:
      httpGet: {path: /livez, port: http}
      periodSeconds: 10
      timeoutSeconds: 5
    # The engine, the database, the data folder and the bucket; a process without NATS is ready.
    readinessProbe:
      httpGet: {path: /readyz, port: http}
      periodSeconds: 5
      timeoutSeconds: 5
    resources: {{- toYaml (eq .role "all" | ternary .Values.resources (eq .role "api" | ternary .Values.dispatch.api.resources .Values.dispatch.worker.resources)) | nindent 6 }}
    volumeMounts: {{- include "proofbox.mounts" . | nindent 6 }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  {{- if ne .role "all" }}
  - name: data
    emptyDir: {}
  - name: keys
    emptyDir: {medium: Memory}
  - name: secret-keys
    secret: {secretName: {{ .Values.dispatch.keysSecret }}, defaultMode: 288}
  {{- end }}
  - name: config
    configMap: {name: {{ include "proofbox.name" . }}}
  - name: tmp
    emptyDir: {}
  {{- if .Values.secretName }}
  - name: secrets
    secret: {secretName: {{ .Values.secretName }}, defaultMode: 288}
  {{- end }}
  {{- if include "proofbox.sidecar" . }}
  - name: engine
    emptyDir: {medium: Memory}
  - name: engine-proxy
    emptyDir: {medium: Memory}
  - name: engine-storage
    emptyDir: {sizeLimit: {{ .Values.engine.sidecar.storage }}}
  {{- end }}
  {{- if include "proofbox.remoteEngine" . }}
  - name: engine-tls
    secret: {secretName: {{ .Values.engine.remote.tlsSecret }}, defaultMode: 288}
  {{- end }}
{{- end -}}

{{- define "proofbox.firstKey" -}}
umask 077
made=/var/lib/proofbox/first-key.made
if [ ! -e "$made" ]; then
  # By itself, so that a failure ends this: in a condition it would count as keys that exist.
  keys=$(proofbox keys list --json)
  if [ "$keys" = "[]" ]; then
    proofbox keys create --name first --json >/var/lib/proofbox/first-key.json
  fi
  touch "$made"
fi
{{- end -}}
