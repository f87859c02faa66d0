// A web server for one person, configured as tests/interop/programs.py says.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const nonce, state = "a nonce of this test", "a state of this test"

func main() {
	ctx := context.Background()
	provider, err := oidc.NewProvider(ctx, os.Getenv("ISSUER"))
	if err != nil {
		log.Fatal(err)
	}
	home := "127.0.0.1:" + os.Getenv("PORT")
	config := oauth2.Config{
		ClientID:     os.Getenv("CLIENT_ID"),
		ClientSecret: os.Getenv("CLIENT_SECRET"),
		Endpoint:     provider.Endpoint(),
		RedirectURL:  "http://" + home + "/callback",
		Scopes:       []string{oidc.ScopeOpenID, "email", "profile", oidc.ScopeOfflineAccess},
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: config.ClientID})
	pkce := oauth2.GenerateVerifier()
	var tokens *oauth2.Token

	verified := func() (any, error) {
		raw, _ := tokens.Extra("id_token").(string)
		idToken, err := verifier.Verify(ctx, raw)
		if err != nil {
			return nil, err
		}
		if idToken.Nonce != nonce {
			return nil, fmt.Errorf("another nonce: %q", idToken.Nonce)
		}
		if err := idToken.VerifyAccessToken(tokens.AccessToken); err != nil {
			return nil, err
		}
		return map[string]string{"sub": idToken.Subject, "id_token": raw}, nil
	}

	http.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, config.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(pkce)), http.StatusFound)
	})
	answer("/callback", func(query url.Values) (any, error) {
		if query.Get("state") != state {
			return nil, fmt.Errorf("another state: %q", query.Get("state"))
		}
		var err error
		if tokens, err = config.Exchange(ctx, query.Get("code"), oauth2.VerifierOption(pkce)); err != nil {
			return nil, err
		}
		return verified()
	})
	answer("/userinfo", func(url.Values) (any, error) {
		info, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
		if err != nil {
			return nil, err
		}
		return map[string]string{"sub": info.Subject, "email": info.Email}, nil
	})
	answer("/refresh", func(url.Values) (any, error) {
		// A token without an access token is one that has to be refreshed.
		renewed, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: tokens.RefreshToken}).Token()
		if err != nil {
			return nil, err
		}
		tokens = renewed
		return verified()
	})

	listener, err := net.Listen("tcp", home)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	log.Fatal(http.Serve(listener, nil))
}

func answer(path string, work func(url.Values) (any, error)) {
	http.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		told, err := work(r.URL.Query())
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			told = map[string]string{"failed": err.Error()}
		}
		json.NewEncoder(w).Encode(told)
	})
}
