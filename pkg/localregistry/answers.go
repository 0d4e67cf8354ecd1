package localregistry

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/containerd/errdefs"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// refuse answers with an error as the specification of OCI distribution wants it.
func refuse(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]string{"code": code, "message": text}}})
}

// fail answers with an error of the store or of an upstream. After any error, a
// node asks the upstream itself, with the credentials of the pod.
func fail(w http.ResponseWriter, unknown string, err error) {
	var answered *transport.Error
	switch {
	case errdefs.IsNotFound(err):
		refuse(w, http.StatusNotFound, unknown, err.Error())
	case errdefs.IsInvalidArgument(err):
		refuse(w, http.StatusBadRequest, unknown, err.Error())
	case errors.As(err, &answered) && answered.StatusCode < http.StatusInternalServerError:
		refuse(w, http.StatusNotFound, unknown, err.Error())
	case errors.Is(err, errUpstream):
		refuse(w, http.StatusBadGateway, "UNAVAILABLE", err.Error())
	default:
		refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
	}
}
