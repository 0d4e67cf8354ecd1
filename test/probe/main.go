// Command probe is both ends of a packet's way: a server that answers with the
// address it was asked from, and a client.
//
//	probe serve              answer on :8080: / the caller's address, /bytes?n=N zeros,
//	                         /ask?url=URL what that URL answers to this probe
//	probe get URL            print the answer
//	probe count FILE         add a byte to the file, print its size, and wait for a signal
//	probe resolve NAME       print its addresses
//	probe download URL       print how many bytes came
//	probe watch MASTER NODE  tell when a new cluster first does what
//	probe delay LATENCY FOR  hold each packet of netfilter's queue 0 for that long
//	probe usage PROGRAM ...  run it and print seconds and kilobytes
//	probe leases ENDPOINT COUNT SUBNET ADDRESS  write flannel leases of COUNT hosts,
//	                         with the subnets and addresses that follow these
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	switch args[0] {
	case "serve":
		return serve()
	case "get":
		return get(ctx, args[1], os.Stdout)
	case "download":
		var n counter
		err := get(ctx, args[1], &n)
		fmt.Println(int64(n))
		return err
	case "watch":
		return watch(args[1], args[2])
	case "leases":
		return leases(ctx, args[1], args[2], args[3], args[4])
	case "usage":
		return usage(args[1:])
	case "delay":
		latency, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		during, err := time.ParseDuration(args[2])
		if err != nil {
			return err
		}
		return delay(latency, during)
	case "count":
		return count(args[1])
	case "resolve":
		addrs, err := net.DefaultResolver.LookupHost(ctx, args[1])
		fmt.Println(strings.Join(addrs, " "))
		return err
	}
	return fmt.Errorf("unknown command %q", args[0])
}

func serve() error {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		from, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintln(w, from)
	})
	http.HandleFunc("/bytes", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.ParseInt(r.URL.Query().Get("n"), 10, 64)
		_, _ = io.CopyN(w, zeros{}, n)
	})
	http.HandleFunc("/ask", ask)
	return http.ListenAndServe(":8080", nil)
}

// count shows whether a file survived the programs that wrote it.
func count(path string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write([]byte{'x'}); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	fmt.Println(info.Size())
	end, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	<-end.Done()
	return nil
}

// ask sends a request from where this probe runs.
func ask(w http.ResponseWriter, r *http.Request) {
	var answer bytes.Buffer
	if err := get(r.Context(), r.URL.Query().Get("url"), &answer); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	_, _ = answer.WriteTo(w)
}

func get(ctx context.Context, url string, to io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(to, response.Body)
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }
