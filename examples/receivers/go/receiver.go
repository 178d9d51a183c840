package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const (
	maxBodyBytes             = 1 << 20
	allowedRequestsPerMinute = 6_000
)

var originPattern = regexp.MustCompile(`^[A-Za-z0-9.:\[\]-]{1,255}$`)

// Receiver answers Posthorn.
type Receiver struct {
	secrets                      []string
	inbox                        *Inbox
	log                          *log.Logger
	requests, verified, rejected atomic.Int64
}

// NewReceiver makes one that accepts any of the secrets.
func NewReceiver(secrets []string) *Receiver {
	return &Receiver{secrets: secrets, inbox: NewInbox(), log: log.New(os.Stdout, "", 0)}
}

func (receiver *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "POST /hook":
		receiver.requests.Add(1)
		status, text := receiver.receive(w, r)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	case "OPTIONS /hook":
		receiver.answerHandshake(w, r)
	case "GET /stats":
		receiver.answerStats(w, r)
	default:
		http.NotFound(w, r)
	}
}

// message is what the receiver wants to know of a body, in either envelope.
type message struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`

	DeliveryID string `json:"delivery_id"`
	CreatedAt  string `json:"created_at"`

	SpecVersion string `json:"specversion"` // A CloudEvent has these.
	ID          string `json:"id"`
	Source      string `json:"source"`
	Time        string `json:"time"`
}

// receive says what to answer.
func (receiver *Receiver) receive(w http.ResponseWriter, r *http.Request) (int, string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge, "The body is too large"
	} else if err != nil {
		return http.StatusBadRequest, "The body ended early"
	}

	// Verify the bytes as they came. Nothing in them is to be trusted, or even parsed, before.
	if err := VerifySignature(body, r.Header, receiver.secrets, time.Now()); err != nil {
		receiver.rejected.Add(1)
		receiver.log.Printf("rejected a request: %v", err)
		return http.StatusUnauthorized, "The signature is not valid"
	}
	receiver.verified.Add(1)

	var got message
	if !utf8.Valid(body) || json.Unmarshal(body, &got) != nil {
		return http.StatusBadRequest, "The body is not a delivery"
	}
	var data struct {
		Challenge string `json:"challenge"`
		InvoiceID string `json:"invoice_id"` // What this service's events are about. Put yours in its place.
	}
	_ = json.Unmarshal(got.Data, &data) // Data may be any JSON: what isn't there stays empty.
	if got.Type == "webhook.verification" && data.Challenge != "" {
		receiver.log.Print("answered a verification challenge")
		return http.StatusOK, data.Challenge
	}
	if got.Type == "webhook.ping" {
		return http.StatusOK, "ok"
	}
	key, happenedAt := got.DeliveryID, got.CreatedAt
	if got.SpecVersion != "" {
		key, happenedAt = got.Source+" "+got.ID, got.Time
	}
	if got.Type == "" || key == "" || (got.SpecVersion != "" && (got.Source == "" || got.ID == "")) {
		return http.StatusBadRequest, "The body is not a delivery"
	}
	// Store it before the answer: after a 2xx it isn't sent again. What takes longer comes later, in a job of its own.
	outcome := receiver.inbox.Take(key, got.Type, happenedAt, data.InvoiceID)
	receiver.log.Printf("%s %s: %s", got.Type, key, outcome)
	return http.StatusOK, "ok"
}

// answerHandshake follows CloudEvents' HTTP webhooks, section 4: a sender asks before it sends. The signature still decides who is
// believed.
func (receiver *Receiver) answerHandshake(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", "OPTIONS, POST")
	if origin := r.Header.Get("WebHook-Request-Origin"); originPattern.MatchString(origin) {
		receiver.log.Printf("allowed %s to send", origin)
		w.Header().Set("WebHook-Allowed-Origin", origin)
		w.Header().Set("WebHook-Allowed-Rate", strconv.Itoa(allowedRequestsPerMinute))
	}
	w.WriteHeader(http.StatusNoContent)
}

func (receiver *Receiver) answerStats(w http.ResponseWriter, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		http.NotFound(w, r)
		return
	}
	stats := receiver.inbox.Stats()
	stats["requests"], stats["verified"], stats["rejected"] =
		receiver.requests.Load(), receiver.verified.Load(), receiver.rejected.Load()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(stats)
}
