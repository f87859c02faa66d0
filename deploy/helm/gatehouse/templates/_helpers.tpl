{{- define "gatehouse.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "gatehouse.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gatehouse.labels" -}}
{{ include "gatehouse.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "gatehouse.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "gatehouse.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "gatehouse.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- /* GATEHOUSE__MAIL__HOST for mail.host */ -}}
{{- define "gatehouse.variable" -}}
GATEHOUSE__{{ . | replace "." "__" | upper }}
{{- end -}}

{{- define "gatehouse.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "gatehouse.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- /* Secrets that both the pods and the migrate Job read, as files below /run/secrets; takes (list root databaseUrl). */ -}}
{{- define "gatehouse.secretVolumes" -}}
{{- $root := index . 0 -}}
- name: data
  emptyDir: {sizeLimit: 256Mi}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ $root.Values.secrets.masterKey.name }}
          items: [{key: {{ $root.Values.secrets.masterKey.key }}, path: security.master_key}]
      - secret:
          name: {{ (index . 1).name }}
          items: [{key: {{ (index . 1).key }}, path: database.url}]
      {{- include "gatehouse.databaseCa" $root | nindent 6 }}
      {{- range $name, $secret := $root.Values.secrets.settings }}
      - secret:
          name: {{ $secret.name }}
          items: [{key: {{ $secret.key }}, path: {{ $name }}}]
      {{- end }}
{{- end -}}

{{- define "gatehouse.databaseCa" -}}
{{- with .Values.secrets.databaseCa -}}
{{- if .name -}}
- secret:
    name: {{ .name }}
    items: [{key: {{ .key }}, path: database-ca.pem}]
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gatehouse.environment" -}}
- name: GATEHOUSE__SERVER__BASE_URL
  value: {{ .Values.baseUrl | quote }}
- name: GATEHOUSE__SECURITY__MASTER_KEY__FILE
  value: /run/secrets/gatehouse/security.master_key
- name: GATEHOUSE__DATABASE__URL__FILE
  value: /run/secrets/gatehouse/database.url
{{- range $name, $secret := .Values.secrets.settings }}
- name: {{ include "gatehouse.variable" $name }}__FILE
  value: /run/secrets/gatehouse/{{ $name }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ include "gatehouse.variable" $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end -}}
