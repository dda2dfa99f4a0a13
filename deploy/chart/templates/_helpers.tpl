{{- define "gpu-portal.labels" -}}
app.kubernetes.io/name: gpu-portal
app.kubernetes.io/part-of: gpu-portal
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "gpu-portal.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "gpu-portal.host" -}}
{{ regexReplaceAll ":[0-9]+$" (urlParse .Values.url).host "" }}
{{- end }}

{{/* Settings that all roles have; each is in docs/operate/settings.md. */}}
{{- define "gpu-portal.env" -}}
{{- $host := include "gpu-portal.host" . }}
{{- $settings := dict
      "ALLOWED_HOSTS" (printf "%s,gpu-portal,gpu-portal.%s,gpu-portal.%s.svc" $host .Release.Namespace .Release.Namespace)
      "CLUSTER_NAME" .Values.clusterName
      "PORTAL_URL" .Values.url
      "TRUSTED_PROXIES" (.Values.trustedProxies | toString) }}
{{- range $secret := list "DATABASE_URL" "REDIS_URL" "SECRET_KEY" }}
{{- $_ := set $settings (printf "%s_FILE" $secret) (printf "/run/secrets/gpu-portal/%s" $secret) }}
{{- end }}
{{- if .Values.monitoring.metrics }}
{{- $_ := set $settings "METRICS_TOKEN_FILE" "/run/secrets/gpu-portal/METRICS_TOKEN" }}
{{- end }}
{{- range $name, $value := mergeOverwrite $settings .Values.settings }}
- {name: {{ $name }}, value: {{ kindIs "float64" $value | ternary (printf "%.0f" $value) (toString $value) | quote }}}
{{- end }}
{{- end }}

{{/*
The template of a pod. Takes root, component, and of its container args or command, resources; optional: token (whether
the API server is asked), alive (whether probes read the file that the role touches), owner (whether the Secret of the
database's owner is mounted), wait (whether migrations are waited for), grace (seconds), restartPolicy, container (more
fields of the container).
*/}}
{{- define "gpu-portal.pod" -}}
{{- $values := .root.Values -}}
metadata:
  labels:
    {{- include "gpu-portal.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with $values.pods.labels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with $values.pods.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ ternary "portal" "default" (.token | default false) }}
  automountServiceAccountToken: {{ .token | default false }}
  enableServiceLinks: false
  {{- with .restartPolicy }}
  restartPolicy: {{ . }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .grace | default 30 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile: {type: RuntimeDefault}
  {{- with $values.image.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.pods.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.pods.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.pods.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.pods.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- if .spread }}
  topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {app.kubernetes.io/name: gpu-portal, app.kubernetes.io/component: {{ $.component }}}}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
  {{- end }}
  {{- if and .wait (eq $values.migrations.mode "job") }}
  initContainers:
  - name: wait
    args: [wait]
    resources: {{- toYaml $values.migrations.resources | nindent 6 }}
    {{- include "gpu-portal.container" (omit . "alive" "owner") | nindent 4 }}
  {{- end }}
  containers:
  - name: {{ .component }}
    {{- with .command }}
    command: {{ toJson . }}
    {{- end }}
    {{- with .args }}
    args: {{ toJson . }}
    {{- end }}
    resources: {{- toYaml .resources | nindent 6 }}
    {{- with .container }}{{ toYaml . | nindent 4 }}{{ end }}
    {{- if .alive }}
    startupProbe: {exec: {command: [python, -m, portal.server, alive]}, periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 60}
    livenessProbe: {exec: {command: [python, -m, portal.server, alive]}, periodSeconds: 30, timeoutSeconds: 10, failureThreshold: 3}
    {{- end }}
    {{- include "gpu-portal.container" . | nindent 4 }}
  volumes:
  - {name: tmp, emptyDir: {}}
  - {name: application, secret: {secretName: {{ $values.secrets.application }}, defaultMode: 0440}}
  {{- if .owner }}
  - {name: owner, secret: {secretName: {{ $values.secrets.owner }}, defaultMode: 0440}}
  {{- end }}
  {{- with $values.pods.volumes }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}

{{- define "gpu-portal.container" -}}
{{- $values := .root.Values -}}
image: {{ include "gpu-portal.image" .root }}
imagePullPolicy: {{ $values.image.pullPolicy }}
env:
{{- include "gpu-portal.env" .root }}
{{- if .alive }}
- {name: ALIVE_FILE, value: /tmp/alive}
{{- end }}
{{- if .owner }}
- {name: DATABASE_OWNER_URL_FILE, value: /run/secrets/gpu-portal-owner/DATABASE_OWNER_URL}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  capabilities: {drop: [ALL]}
volumeMounts:
- {name: tmp, mountPath: /tmp}
- {name: application, mountPath: /run/secrets/gpu-portal, readOnly: true}
{{- if .owner }}
- {name: owner, mountPath: /run/secrets/gpu-portal-owner, readOnly: true}
{{- end }}
{{- with $values.pods.volumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What a chart cannot leave to the schema of its values. */}}
{{- define "gpu-portal.check" -}}
{{- if ne .Release.Namespace "gpu-portal" }}
{{- fail (printf "Install into namespace gpu-portal, not %s: admission policies and roles name the service account system:serviceaccount:gpu-portal:portal. Add --namespace gpu-portal." .Release.Namespace) }}
{{- end }}
{{- end }}
