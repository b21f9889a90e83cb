{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- define "attendant.selector" -}}
app.kubernetes.io/name: attendant
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "attendant.metadata" -}}
name: {{ .Release.Name }}
{{ include "attendant.labels" . }}
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
