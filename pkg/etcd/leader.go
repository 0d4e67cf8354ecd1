package etcd

import (
	"context"
	"errors"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// toLeader makes the client talk only to etcd's leader. A follower of etcd
// 3.7 forwards a promotion without the caller's identity, which a leader with
// auth refuses, and then retries without a pause until the request times out.
func toLeader(ctx context.Context, client *clientv3.Client) error {
	list, err := client.MemberList(ctx)
	if err != nil {
		return err
	}
	var seen error
	for _, endpoint := range client.Endpoints() {
		status, err := client.Status(ctx, endpoint)
		if err != nil {
			seen = errors.Join(seen, err)
			continue
		}
		for _, member := range list.Members {
			if member.ID == status.Leader && len(member.ClientURLs) > 0 {
				if !slices.Equal(client.Endpoints(), member.ClientURLs[:1]) {
					client.SetEndpoints(member.ClientURLs[0])
				}
				return nil
			}
		}
	}
	return errors.Join(errors.New("etcd has no leader"), seen)
}
