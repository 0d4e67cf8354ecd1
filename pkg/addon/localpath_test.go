package addon

import (
	"context"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	apicel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// helperPod is a pod that the provisioner 0.0.30 creates.
const helperPod = `
apiVersion: v1
kind: Pod
metadata: {name: helper-pod-create-pvc-1, namespace: local-path-storage}
spec:
  automountServiceAccountToken: false
  serviceAccountName: helper
  nodeName: worker
  restartPolicy: Never
  securityContext: {}
  tolerations: [{operator: Exists}]
  containers:
  - name: helper-pod
    image: h:v1
    command: [/bin/sh, /script/setup]
    args: [-p, /volumes/pvc-1_default_x, -s, "1", -m, Filesystem, -a, create]
    env: [{name: VOL_DIR, value: /volumes/pvc-1_default_x}]
    securityContext:
      allowPrivilegeEscalation: false
      capabilities: {add: [DAC_OVERRIDE, FOWNER], drop: [ALL]}
      readOnlyRootFilesystem: true
      runAsUser: 0
      seccompProfile: {type: RuntimeDefault}
    volumeMounts: [{name: script, mountPath: /script}, {name: data, mountPath: /volumes/}]
  volumes:
  - {name: data, hostPath: {path: /volumes/, type: DirectoryOrCreate}}
  - {name: script, configMap: {name: local-path-config, items: [{key: setup, path: setup}, {key: teardown, path: teardown}]}}
`

const volume = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: pvc-1}
spec: {hostPath: {path: /volumes/pvc-1_default_x, type: DirectoryOrCreate}, accessModes: [ReadWriteOnce], capacity: {storage: 1Mi}}
`

// TestWhatTheProvisionerMayCreate asks the code of the API server.
func TestWhatTheProvisionerMayCreate(t *testing.T) {
	deny := denies(t)
	for what, object := range map[string]string{
		"its pod": helperPod, "a pod that deletes": strings.Replace(helperPod, "/script/setup", "/script/teardown", 1),
		"its volume": volume, "a local volume": strings.Replace(volume,
			"hostPath: {path: /volumes/pvc-1_default_x, type: DirectoryOrCreate}", "local: {path: /volumes/x}", 1),
	} {
		if why := deny(object); why != "" {
			t.Errorf("%s is denied: %s", what, why)
		}
	}
}

// TestWhatItsTokenDoesNotOpen: each of these pods and volumes opens a host.
func TestWhatItsTokenDoesNotOpen(t *testing.T) {
	deny := denies(t)
	for _, change := range [][2]string{
		{"path: /volumes/,", "path: /,"}, {"path: /volumes/,", "path: /volumes-of-another/,"},
		{"image: h:v1", "image: evil:v1"},
		{"[/bin/sh, /script/setup]", "[/bin/sh, -c, id]"}, {"    command: [/bin/sh, /script/setup]\n", ""},
		{"mountPath: /script}", "mountPath: /other}, {name: data, mountPath: /script}"},
		{"name: local-path-config", "name: other"},
		{"serviceAccountName: helper", "serviceAccountName: local-path-provisioner"},
		{"automountServiceAccountToken: false", "automountServiceAccountToken: true"},
		{"  automountServiceAccountToken: false\n", ""}, {"restartPolicy: Never", "hostNetwork: true"},
		{"restartPolicy: Never", "hostPID: true"},
		{"restartPolicy: Never", "hostIPC: true"}, {"restartPolicy: Never", "initContainers: [{name: x, image: h:v1}]"},
		{"  volumes:\n", "  - {name: second, image: h:v1}\n  volumes:\n"}, {"runAsUser: 0", "privileged: true"},
		{"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true"},
		{"      allowPrivilegeEscalation: false\n", ""},
		{"DAC_OVERRIDE, FOWNER", "SYS_ADMIN"}, {"drop: [ALL]", "drop: [KILL]"}, {", drop: [ALL]", ""},
		{"RuntimeDefault", "Unconfined"},
		{"runAsUser: 0", "procMount: Unmasked"},
		{"args:", "lifecycle: {postStart: {exec: {command: [id]}}}\n    args:"},
		{"args:", "livenessProbe: {exec: {command: [id]}}\n    args:"},
		{"value: /volumes/pvc-1_default_x}", "valueFrom: {secretKeyRef: {name: x, key: x}}}"},
		{"args:", "envFrom: [{secretRef: {name: x}}]\n    args:"},
		{"  volumes:\n", "  volumes:\n  - {name: script, secret: {secretName: x}}\n"},
	} {
		changed := strings.Replace(helperPod, change[0], change[1], 1)
		if why := deny(changed); changed == helperPod || why == "" {
			t.Errorf("%q instead of %q is accepted", change[1], change[0])
		}
	}
	for _, other := range []string{
		"hostPath: {path: /etc}", "hostPath: {path: /}", "hostPath: {path: /volumes-x}", "local: {path: /etc}",
		"nfs: {server: 192.0.2.1, path: /}",
	} {
		if why := deny(strings.Replace(volume, "hostPath: {path: /volumes/pvc-1_default_x, type: DirectoryOrCreate}",
			other, 1)); why == "" {
			t.Errorf("a volume of %s is accepted", other)
		}
	}
}

// denies returns the function that says why the policies of the addon deny an object of
// the provisioner, or "".
func denies(t *testing.T) func(object string) string {
	t.Helper()
	settings, err := variants()["full"].Values()
	must.NoError(t, err)
	settings.LocalPathImage, settings.HelperImage, settings.VolumesDir = "l:v1", "h:v1", "/volumes"
	text, err := with(settings).Named(extension.AddonLocalPath)
	must.NoError(t, err)
	all, err := kube.Objects(text)
	must.NoError(t, err)
	policies := policiesOf(t, all)
	account := &user.DefaultInfo{Name: "system:serviceaccount:local-path-storage:local-path-provisioner"}
	return func(object string) string { return denied(t, policies, object, account) }
}

// policiesOf returns the policies of a manifest by their resources.
func policiesOf(t *testing.T, all []*kube.Object) map[string]admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	policies := map[string]admissionv1.ValidatingAdmissionPolicy{}
	for _, o := range all {
		if o.GetKind() == "ValidatingAdmissionPolicy" {
			var p admissionv1.ValidatingAdmissionPolicy
			must.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &p))
			for _, resource := range p.Spec.MatchConstraints.ResourceRules[0].Resources {
				policies[resource] = p
			}
		}
	}
	return policies
}

// expression is a variable or a condition of a policy.
type expression struct {
	name, text string
	result     *celgo.Type
}

func (e expression) GetName() string            { return e.name }
func (e expression) GetExpression() string      { return e.text }
func (e expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{e.result} }

// nobodyMay is an authorizer that permits nothing.
func nobodyMay(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", nil
}

// denied returns the messages of the validations that an object of a user fails.
func denied(
	t *testing.T, policies map[string]admissionv1.ValidatingAdmissionPolicy, object string, by user.Info,
) string {
	t.Helper()
	o := &unstructured.Unstructured{}
	must.NoError(t, yaml.Unmarshal([]byte(object), &o.Object))
	resource := strings.ToLower(o.GetKind()) + "s"
	p, found := policies[resource]
	if !found {
		t.Fatalf("no policy for %s", resource)
	}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	must.NoError(t, err)
	typed, err := scheme.Scheme.New(o.GroupVersionKind())
	must.NoError(t, err)
	must.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed))
	var variables []cel.NamedExpressionAccessor
	for _, v := range p.Spec.Variables {
		variables = append(variables, expression{v.Name, v.Expression, celgo.AnyType})
	}
	options := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	compiler.CompileAndStoreVariables(variables, options, environment.StoredExpressions)
	var conditions []cel.ExpressionAccessor
	for _, m := range p.Spec.MatchConditions {
		conditions = append(conditions, expression{"", m.Expression, celgo.BoolType})
	}
	for _, v := range p.Spec.Validations {
		conditions = append(conditions, expression{"", v.Expression, celgo.BoolType})
	}
	evaluator := compiler.CompileCondition(conditions, options, environment.StoredExpressions)
	for _, err := range evaluator.CompilationErrors() {
		t.Error(err)
	}
	kind := o.GroupVersionKind()
	attributes := admission.NewAttributesRecord(typed, nil, kind, o.GetNamespace(), o.GetName(),
		kind.GroupVersion().WithResource(resource), "",
		admission.Create, nil, false, by)
	versioned := &admission.VersionedAttributes{
		Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(typed),
	}
	request := cel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(attributes.GetResource()),
		metav1.GroupVersionKind(kind))
	results, _, err := evaluator.ForInput(t.Context(), versioned, request,
		cel.OptionalVariableBindings{Authorizer: authorizer.AuthorizerFunc(nobodyMay)}, nil,
		apicel.RuntimeCELCostBudget)
	must.NoError(t, err)
	var why []string
	for i, r := range results {
		if i < len(p.Spec.MatchConditions) {
			if r.Error != nil || r.EvalResult.Value() != true {
				t.Errorf("the policy does not apply: %v", r.Error)
			}
		} else if r.Error != nil {
			why = append(why, r.Error.Error())
		} else if r.EvalResult.Value() != true {
			why = append(why, p.Spec.Validations[i-len(p.Spec.MatchConditions)].Message)
		}
	}
	return strings.Join(why, "; ")
}
