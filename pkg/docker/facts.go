package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
)

// lostPool is what Docker 28.5 answers for each of the user's default-address-pools once it has read its
// settings again (SIGHUP). The client refuses the whole answer.
// https://github.com/moby/moby/blob/docker-v29.7.2/daemon/reload.go#L20-L27
const lostPool = "invalid Prefix"

// Facts returns the engine's description of itself. The base of an address pool is the zero value if the
// engine does not know it any more.
func (d *Engine) Facts(ctx context.Context) (system.Info, error) { return facts(ctx, d.Client) }

func facts(ctx context.Context, api *client.Client) (system.Info, error) {
	info, err := api.Info(ctx, client.InfoOptions{})
	if err == nil || !strings.Contains(err.Error(), lostPool) {
		return info.Info, err
	}
	return factsWithLostPools(ctx, api)
}

func factsWithLostPools(ctx context.Context, api *client.Client) (info system.Info, err error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return api.Dialer()(ctx) }
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+client.DummyHost+"/info", http.NoBody)
	if err != nil {
		return info, err
	}
	response, err := (&http.Transport{DialContext: dial, DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return info, noAnswer(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return info, noAnswer(err)
	}
	if response.StatusCode != http.StatusOK {
		return info, fmt.Errorf("%s: %s: %s", request.URL.Path, response.Status, body)
	}
	return info, json.Unmarshal(bytes.ReplaceAll(body, []byte(`"`+lostPool+`"`), []byte(`""`)), &info)
}
