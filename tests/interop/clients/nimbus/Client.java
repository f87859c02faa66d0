// Nimbus OAuth 2.0 SDK: a web server for one person, configured as tests/interop/programs.py says.
import com.nimbusds.jose.util.DefaultResourceRetriever;
import com.nimbusds.oauth2.sdk.*;
import com.nimbusds.oauth2.sdk.auth.ClientSecretBasic;
import com.nimbusds.oauth2.sdk.auth.Secret;
import com.nimbusds.oauth2.sdk.http.HTTPResponse;
import com.nimbusds.oauth2.sdk.id.*;
import com.nimbusds.oauth2.sdk.pkce.*;
import com.nimbusds.oauth2.sdk.token.AccessToken;
import com.nimbusds.openid.connect.sdk.*;
import com.nimbusds.openid.connect.sdk.op.OIDCProviderMetadata;
import com.nimbusds.openid.connect.sdk.rp.OIDCClientInformation;
import com.nimbusds.openid.connect.sdk.rp.OIDCClientMetadata;
import com.nimbusds.openid.connect.sdk.token.OIDCTokens;
import com.nimbusds.openid.connect.sdk.validators.*;
import com.nimbusds.jose.JWSAlgorithm;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.Map;
import net.minidev.json.JSONObject;

class Client {
    static final Issuer ISSUER = new Issuer(System.getenv("ISSUER"));
    static final ClientID ID = new ClientID(System.getenv("CLIENT_ID"));
    static final Secret SECRET = new Secret(System.getenv("CLIENT_SECRET"));
    static final int PORT = Integer.parseInt(System.getenv("PORT"));
    static final String HOME = "http://127.0.0.1:" + PORT;
    static final URI CALLBACK = URI.create(HOME + "/callback");

    static OIDCProviderMetadata server;
    static IDTokenValidator validator;
    static State state;
    static Nonce nonce;
    static CodeVerifier verifier;
    static OIDCTokens tokens;

    interface Handler {
        Object answer(URI address) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        server = OIDCProviderMetadata.resolve(ISSUER);
        validator = new IDTokenValidator(ISSUER, ID, JWSAlgorithm.RS256, server.getJWKSetURI().toURL(), new DefaultResourceRetriever(5000, 5000));
        HttpServer web = HttpServer.create(new InetSocketAddress("127.0.0.1", PORT), 0);
        serve(web, "/login", Client::login);
        serve(web, "/callback", Client::callback);
        serve(web, "/userinfo", address -> successful(UserInfoResponse.parse(
            new UserInfoRequest(server.getUserInfoEndpointURI(), tokens.getAccessToken()).toHTTPRequest().send()))
            .toSuccessResponse().getUserInfo().toJSONObject());
        serve(web, "/refresh", address -> taken(new RefreshTokenGrant(tokens.getRefreshToken())));
        web.start();
        System.out.println("ready");
    }

    static Object login(URI address) {
        state = new State();
        nonce = new Nonce();
        verifier = new CodeVerifier();
        Scope scope = new Scope("openid", "email", "profile", "offline_access");
        return new AuthenticationRequest.Builder(ResponseType.CODE, scope, ID, CALLBACK)
            .endpointURI(server.getAuthorizationEndpointURI())
            .state(state)
            .nonce(nonce)
            .codeChallenge(verifier, CodeChallengeMethod.S256)
            .build()
            .toURI();
    }

    static Object callback(URI address) throws Exception {
        AuthenticationResponse response = AuthenticationResponseParser.parse(URI.create(HOME + address));
        if (!response.indicatesSuccess()) throw new GeneralException(response.toErrorResponse().toParameters().toString());
        if (!state.equals(response.getState())) throw new GeneralException("another state");
        if (!ISSUER.equals(response.getIssuer())) throw new GeneralException("another issuer");
        AuthorizationCode code = response.toSuccessResponse().getAuthorizationCode();
        return taken(new AuthorizationCodeGrant(code, CALLBACK, verifier));
    }

    static Object taken(AuthorizationGrant grant) throws Exception {
        TokenRequest request = new TokenRequest.Builder(server.getTokenEndpointURI(), new ClientSecretBasic(ID, SECRET), grant).build();
        tokens = successful(OIDCTokenResponseParser.parse(request.toHTTPRequest().send()))
            .toSuccessResponse() instanceof OIDCTokenResponse answer ? answer.getOIDCTokens() : null;
        var claims = validator.validate(tokens.getIDToken(), nonce);

        AccessTokenValidator.validate(tokens.getAccessToken(), JWSAlgorithm.RS256, claims.getAccessTokenHash());
        return Map.of("sub", claims.getSubject().getValue(), "id_token", tokens.getIDTokenString());
    }

    static <T extends Response> T successful(T response) throws GeneralException {
        if (!response.indicatesSuccess()) throw new GeneralException(((ErrorResponse) response).getErrorObject().toJSONObject().toString());
        return response;
    }

    static void serve(HttpServer web, String path, Handler handler) {
        web.createContext(path, exchange -> {
            int status = 200;
            Object told;
            try {
                told = handler.answer(exchange.getRequestURI());
            } catch (Exception error) {
                status = 500;
                told = Map.of("failed", error.toString());
            }
            if (told instanceof URI elsewhere) {
                exchange.getResponseHeaders().set("Location", elsewhere.toString());
                exchange.sendResponseHeaders(302, -1);
            } else {
                byte[] body = new JSONObject((Map<String, ?>) told).toJSONString().getBytes();
                exchange.getResponseHeaders().set("Content-Type", "application/json");
                exchange.sendResponseHeaders(status, body.length);
                exchange.getResponseBody().write(body);
            }
            exchange.close();
        });
    }
}
