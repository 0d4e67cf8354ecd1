package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// StoredAPIs returns the problem that objects were last written with APIs which the version removes [stored-api]. The
// API server converts such objects, so that they stay readable. Their managed fields show who still uses the API,
// also if that was before the API server started.
func StoredAPIs(ctx context.Context, api kube.Connect, from, to string) error {
	kinds := removedKinds(from, to)
	if len(kinds) == 0 {
		return nil
	}
	config, err := api()
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return fmt.Errorf("list the APIs: %w", err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	s := stored{mapper: restmapper.NewDiscoveryRESTMapper(groups), objects: objects}
	found, err := s.writtenAs(ctx, kinds)
	if err != nil || len(found) == 0 {
		return err
	}
	return &step.Problem{
		Name: "stored-api", Firm: true,
		Text: fmt.Sprintf("objects were last written with APIs that Kubernetes %s removes: %s", to,
			strings.Join(found, ", ")),
		Remedy: "change the manifests of these managers to another version of the API, and apply them",
	}
}

// lifecycled is an object of an API whose end is known.
type lifecycled interface {
	APILifecycleRemoved() (major, minor int)
}

// removedKinds returns the kinds that a release has and a later one has not. k8s.io/api states when it removes them.
func removedKinds(from, to string) (kinds []schema.GroupVersionKind) {
	old, target := series(from), series(to)
	for kind := range scheme.Scheme.AllKnownTypes() {
		object, err := scheme.Scheme.New(kind)
		ending, ok := object.(lifecycled)
		if err != nil || !ok || strings.HasSuffix(kind.Kind, "List") {
			continue
		}
		major, minor := ending.APILifecycleRemoved()
		removed := version.MajorMinor(uint(major), uint(minor))
		if old.LessThan(removed) && target.AtLeast(removed) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// series returns the minor version of a release.
func series(release string) *version.Version {
	v := version.MustParseGeneric(release)
	return version.MajorMinor(v.Major(), v.Minor())
}

// stored lists objects in any version of their API.
type stored struct {
	mapper  meta.RESTMapper
	objects metadata.Interface
}

// writtenAs returns the objects of which a manager last wrote fields in one of the kinds.
func (s stored) writtenAs(ctx context.Context, kinds []schema.GroupVersionKind) (found []string, err error) {
	for _, kind := range kinds {
		mapping, err := s.mapper.RESTMapping(kind.GroupKind())
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list, err := s.objects.Resource(mapping.Resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", mapping.Resource.Resource, err)
		}
		for i := range list.Items {
			if who := managerOf(&list.Items[i], kind.GroupVersion().String()); who != "" {
				name := strings.TrimPrefix(list.Items[i].Namespace+"/"+list.Items[i].Name, "/")
				found = append(found, fmt.Sprintf("%s %s (%s by %s)", kind.Kind, name, kind.GroupVersion(), who))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// managerOf returns who last wrote fields of an object in a version of its API; "" if nobody did.
func managerOf(object metav1.Object, apiVersion string) string {
	for _, entry := range object.GetManagedFields() {
		if entry.APIVersion == apiVersion {
			return entry.Manager
		}
	}
	return ""
}
