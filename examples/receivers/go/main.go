// A receiver for Posthorn's webhooks, with the standard library only.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const help = `A receiver for Posthorn's webhooks, with the standard library only.

Usage: WEBHOOK_SECRET=whsec_… go run .

  WEBHOOK_SECRET  the endpoint's secret, from the answer that created it; several, separated by commas, while you rotate
  PORT            where to listen, default 8410; 0 takes a free one
  HOST            default 127.0.0.1

Deliveries go to POST /hook, handshakes to OPTIONS /hook. From this machine: GET /stats.
`

func main() {
	for _, argument := range os.Args[1:] {
		if argument == "--help" || argument == "-h" {
			fmt.Print(help)
			return
		}
	}
	secrets := strings.FieldsFunc(os.Getenv("WEBHOOK_SECRET"), func(r rune) bool { return strings.ContainsRune(", \t\n", r) })
	if len(secrets) == 0 {
		fmt.Fprintln(os.Stderr, "WEBHOOK_SECRET is not set")
		os.Exit(2)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(envOr("HOST", "127.0.0.1"), envOr("PORT", "8410")))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("Listening on http://%s/hook\n", listener.Addr())

	server := &http.Server{
		Handler:        NewReceiver(secrets),
		ReadTimeout:    30 * time.Second,
		IdleTimeout:    60 * time.Second,
		MaxHeaderBytes: 16 * 1024,
	}
	stopped, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-stopped.Done()
		// Answers under way get a moment.
		patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(patience)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func envOr(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}
