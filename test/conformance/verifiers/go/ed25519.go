package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const ed25519Name = "crypto/ed25519 (Go)"

const toleranceSeconds = 300

// verifyEd25519 follows the text of Standard Webhooks with Go's own Ed25519, since its library knows HMAC only.
func verifyEd25519(publicKey string, body []byte, header http.Header) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(publicKey, "whpk_"))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return errors.New("this is no public key")
	}
	id, timestamp, signatures := header.Get("webhook-id"), header.Get("webhook-timestamp"), header.Get("webhook-signature")
	if id == "" || timestamp == "" || signatures == "" {
		return errors.New("missing required headers")
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return errors.New("the timestamp is no number")
	}
	switch age := time.Now().Unix() - seconds; {
	case age > toleranceSeconds:
		return errors.New("message timestamp too old")
	case age < -toleranceSeconds:
		return errors.New("message timestamp too new")
	}
	content := append([]byte(id+"."+timestamp+"."), body...)
	for _, part := range strings.Split(signatures, " ") {
		version, text, found := strings.Cut(part, ",")
		signature, err := base64.StdEncoding.DecodeString(text)
		if found && version == "v1a" && err == nil && ed25519.Verify(key, content, signature) {
			return nil
		}
	}
	return errors.New("no matching signature found")
}
