// A receiver that verifies with the Go library of Standard Webhooks, unmodified; by a public key (whpk_) with crypto/ed25519.
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
	"strings"

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
		verify, name, err := verifierOf(secrets[index])
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		status := http.StatusOK
		var refusal *string
		if err := verify(body, r.Header); err != nil {
			status = http.StatusBadRequest
			text := err.Error()
			refusal = &text
		}
		hash := sha256.Sum256(body)
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer{hex.EncodeToString(hash[:]), map[string]*string{name: refusal}})
	}
}

type verifier func(body []byte, header http.Header) error

func verifierOf(secret string) (verifier, string, error) {
	if strings.HasPrefix(secret, "whpk_") {
		return func(body []byte, header http.Header) error { return verifyEd25519(secret, body, header) }, ed25519Name, nil
	}
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, "", err
	}
	return webhook.Verify, name, nil
}
