package main

// Verifies the signature of a webhook from Posthorn, in either format. Copy this file: it needs only the standard library.
//
//	default:            Webhook-Signature: t=<unix seconds>,v1=<hexadecimal>[,v1=…]
//	                    over <t>.<body>; the key is the secret's whole text, whsec_ included
//	Standard Webhooks:  Webhook-Signature: v1,<base64>[ v1,…], with Webhook-Id and Webhook-Timestamp
//	                    over <id>.<timestamp>.<body>; the key is the base64 after whsec_, decoded
//
// Both are HMAC-SHA256. While a secret is being rotated there is one v1 for each live secret: any match is enough.

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Tolerance is how far the timestamp may be from this machine's clock: it bounds for how long a recorded request can be replayed.
const Tolerance = 300 * time.Second

// Why a request can't be trusted: for your log, not for the answer.
var (
	ErrHeaderMissing   = errors.New("header_missing")
	ErrHeaderMalformed = errors.New("header_malformed")
	ErrTimestampSkew   = errors.New("timestamp_skew")
	ErrNoMatch         = errors.New("no_match")
)

var (
	unixSeconds     = regexp.MustCompile(`^[0-9]{1,12}$`)
	hexSignature    = regexp.MustCompile(`^[0-9a-f]{64}$`)
	base64Signature = regexp.MustCompile(`^[A-Za-z0-9+/]{43}=$`)
)

// claim is what a request says of itself; whether it is true takes a secret to say.
type claim struct {
	timestamp  string
	prefix     string
	signatures []string
	encode     func(digest []byte) string
	keyOf      func(secret string) []byte
}

// VerifySignature answers nil when one of the signatures was made with one of the secrets: two while you rotate, else one.
// The body is the bytes as they arrived: parsing and serialising again changes them, and no signature matches then.
func VerifySignature(body []byte, header http.Header, secrets []string, now time.Time) error {
	signature := strings.TrimSpace(header.Get("Webhook-Signature"))
	if signature == "" {
		return ErrHeaderMissing
	}
	read := readStandard
	if strings.HasPrefix(signature, "t=") {
		read = readDefault
	}
	claimed := read(signature, header)
	if !unixSeconds.MatchString(claimed.timestamp) || len(claimed.signatures) == 0 {
		return ErrHeaderMalformed
	}
	seconds, _ := strconv.ParseInt(claimed.timestamp, 10, 64)
	if skew := now.Unix() - seconds; max(skew, -skew) > int64(Tolerance.Seconds()) {
		return ErrTimestampSkew
	}

	matches := false
	for _, secret := range secrets {
		key := claimed.keyOf(secret)
		if len(key) == 0 {
			continue // Anybody can sign with an empty key.
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(claimed.prefix))
		mac.Write(body)
		expected := claimed.encode(mac.Sum(nil))
		for _, signature := range claimed.signatures {
			// In constant time, so that the answer's delay tells nothing about the right value.
			if hmac.Equal([]byte(expected), []byte(signature)) {
				matches = true
			}
		}
	}
	if !matches {
		return ErrNoMatch
	}
	return nil
}

func readDefault(signature string, _ http.Header) claim {
	found := claim{encode: hex.EncodeToString, keyOf: func(secret string) []byte { return []byte(secret) }}
	for _, part := range strings.Split(signature, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case name == "t" && found.timestamp == "":
			found.timestamp = value
		case name == "v1" && hexSignature.MatchString(value):
			found.signatures = append(found.signatures, value)
		} // Other names belong to schemes to come, and are skipped.
	}
	found.prefix = found.timestamp + "."
	return found
}

func readStandard(signature string, header http.Header) claim {
	found := claim{encode: base64.StdEncoding.EncodeToString, keyOf: decodeSecret}
	for _, part := range strings.Split(signature, " ") {
		if value, isV1 := strings.CutPrefix(part, "v1,"); isV1 && base64Signature.MatchString(value) {
			found.signatures = append(found.signatures, value)
		}
	}
	id, timestamp := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	if id != "" {
		found.timestamp = timestamp
	}
	found.prefix = id + "." + timestamp + "."
	return found
}

func decodeSecret(secret string) []byte {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return nil
	}
	return key
}
