{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- define "attendant.selector" -}}
app.kubernetes.io/name: attendant
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "attendant.metadata" -}}
name: {{ .Release.Name }}
{{ include "attendant.labels" . }}
{{- end }}

{{- define "attendant.metadata.monitoring" -}}
{{ include "attendant.metadata" . }}
{{- with .Values.monitoring.labels }}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "attendant.labels" -}}
labels:
  {{- include "attendant.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "attendant.container.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* A value of a flag as the server reads it: Helm's own numbers are floats, and YAML's `on` is a boolean. */ -}}
{{- define "attendant.flag" -}}
{{- if kindIs "string" . }}{{ . }}{{ else if kindIs "bool" . }}{{ ternary "on" "off" . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{- define "attendant.http.tls" -}}
{{- if eq (include "attendant.flag" (.Values.flags.http_tls | default "off")) "on" }}on{{ end }}
{{- end }}

{{- define "attendant.http.get" -}}
httpGet: {path: {{ .path }}, port: http{{ if include "attendant.http.tls" .root }}, scheme: HTTPS{{ end }}}
{{- end }}

{{- /* Kubernetes' gRPC probes speak no TLS. */ -}}
{{- define "attendant.probe.ready" -}}
{{- if .Values.flags.tls_cert }}
{{- include "attendant.http.get" (dict "root" . "path" "/readyz") }}
{{- else -}}
grpc: {port: 8001}
{{- end }}
{{- end }}

{{- define "attendant.port.grpc" -}}
{name: grpc, port: 8001, targetPort: grpc{{ if not .Values.flags.tls_cert }}, appProtocol: kubernetes.io/h2c{{ end }}}
{{- end }}
