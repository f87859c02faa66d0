// Spring Security in Spring Boot: a web server for one person, configured as tests/interop/programs.py says.
import java.time.Duration;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.annotation.web.configurers.CsrfConfigurer;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.oauth2.client.*;
import org.springframework.security.oauth2.client.annotation.RegisteredOAuth2AuthorizedClient;
import org.springframework.security.oauth2.client.oidc.web.logout.OidcClientInitiatedLogoutSuccessHandler;
import org.springframework.security.oauth2.client.registration.ClientRegistrationRepository;
import org.springframework.security.oauth2.client.web.*;
import org.springframework.security.oauth2.core.oidc.user.OidcUser;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.view.RedirectView;

@Configuration
@EnableAutoConfiguration
@RestController
class Client {
    static final String START = "/oauth2/authorization/gatehouse";

    public static void main(String[] arguments) {
        String registration = "spring.security.oauth2.client.registration.gatehouse.";
        SpringApplication application = new SpringApplication(Client.class);
        application.setDefaultProperties(Map.of(
            "server.address", "127.0.0.1",
            "server.port", System.getenv("PORT"),
            "spring.main.banner-mode", "off",
            "spring.security.oauth2.client.provider.gatehouse.issuer-uri", System.getenv("ISSUER"),
            registration + "client-id", System.getenv("CLIENT_ID"),
            registration + "client-secret", System.getenv("CLIENT_SECRET"),
            registration + "redirect-uri", "{baseUrl}/callback",
            registration + "scope", "openid,email,profile,offline_access"));
        application.run();
        System.out.println("ready");
    }

    @Bean
    SecurityFilterChain security(HttpSecurity http, ClientRegistrationRepository clients) throws Exception {
        var requests = new DefaultOAuth2AuthorizationRequestResolver(clients, "/oauth2/authorization");
        requests.setAuthorizationRequestCustomizer(OAuth2AuthorizationRequestCustomizers.withPkce());
        var afterLogout = new OidcClientInitiatedLogoutSuccessHandler(clients);
        afterLogout.setPostLogoutRedirectUri("{baseUrl}/logged-out");
        return http
            .csrf(CsrfConfigurer::disable) // so that a GET logs out
            .authorizeHttpRequests(rules -> rules.requestMatchers("/login", "/logged-out").permitAll().anyRequest().authenticated())
            .oauth2Login(login -> login
                .loginPage(START)
                .authorizationEndpoint(endpoint -> endpoint.authorizationRequestResolver(requests))
                .redirectionEndpoint(endpoint -> endpoint.baseUri("/callback"))
                .defaultSuccessUrl("/signed-in", true)
                .failureHandler((request, response, error) -> {
                    response.setStatus(500);
                    response.getWriter().print(error);
                }))
            .logout(logout -> logout.logoutSuccessHandler(afterLogout))
            .build();
    }

    @Bean
    RefreshTokenOAuth2AuthorizedClientProvider refreshing() {
        var provider = new RefreshTokenOAuth2AuthorizedClientProvider();
        provider.setClockSkew(Duration.ofDays(1)); // longer than an access token lives: every one is refreshed
        return provider;
    }

    @Bean
    OAuth2AuthorizedClientManager manager(
            ClientRegistrationRepository clients, OAuth2AuthorizedClientRepository authorized, RefreshTokenOAuth2AuthorizedClientProvider refreshing) {
        var manager = new DefaultOAuth2AuthorizedClientManager(clients, authorized);
        manager.setAuthorizedClientProvider(new DelegatingOAuth2AuthorizedClientProvider(
            OAuth2AuthorizedClientProviderBuilder.builder().authorizationCode().build(), refreshing));
        return manager;
    }

    @GetMapping("/login")
    RedirectView login() {
        return new RedirectView(START);
    }

    @GetMapping("/signed-in")
    Map<String, Object> signedIn() {
        OidcUser user = (OidcUser) SecurityContextHolder.getContext().getAuthentication().getPrincipal();
        return Map.of("sub", user.getSubject(), "id_token", user.getIdToken().getTokenValue());
    }

    @GetMapping("/userinfo")
    Map<String, Object> userinfo(Authentication authentication) {
        return ((OidcUser) authentication.getPrincipal()).getUserInfo().getClaims();
    }

    // The argument is refreshed before the method runs; the new id_token is verified and becomes the person's.
    @GetMapping("/refresh")
    Map<String, Object> refresh(@RegisteredOAuth2AuthorizedClient("gatehouse") OAuth2AuthorizedClient client) {
        return signedIn();
    }

    @GetMapping("/logged-out")
    Map<String, Object> loggedOut(Authentication authentication) {
        return Map.of("signed_in", authentication != null);
    }
}
