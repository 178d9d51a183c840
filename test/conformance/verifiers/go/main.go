// A receiver that verifies with the Go library of Standard Webhooks, unmodified.
//
// The first line of its input is the JSON list of secrets; a POST to /<n> is verified with the nth of them. It answers 200 or 400,
// and in JSON what the verifier said. It prints its port when it listens, and ends with its input.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const name = "standard-webhooks (Go)"

type answer struct {
	SHA256   string             `json:"sha256"`
	Refusals map[string]*string `json:"refusals"`
}

func main() {
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadBytes('\n')
	if err != nil {
		log.Fatal(err)
	}
	var secrets []string
	if err := json.Unmarshal(line, &secrets); err != nil {
		log.Fatal(err)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.Serve(listener, receiver(secrets))) }()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	if _, err := io.Copy(io.Discard, input); err != nil {
		log.Fatal(err)
	}
}

func receiver(secrets []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		index, err := strconv.Atoi(r.URL.Path[1:])
		if err != nil || index < 0 || index >= len(secrets) {
			http.Error(w, "no such secret", http.StatusNotFound)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		webhook, err := standardwebhooks.NewWebhook(secrets[index])
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		status := http.StatusOK
		var refusal *string
		if err := webhook.Verify(body, r.Header); err != nil {
			status = http.StatusBadRequest
			text := err.Error()
			refusal = &text
		}
		hash := sha256.Sum256(body)
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer{hex.EncodeToString(hash[:]), map[string]*string{name: refusal}})
	}
}
