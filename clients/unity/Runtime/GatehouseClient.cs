// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using UnityEngine;

namespace Gatehouse
{
    /// <summary>
    /// Signs players in with Gatehouse. Add it to a game object, set the address and the application, and await its methods
    /// from the main thread. It uses UnityWebRequest and coroutines only: no thread and no socket, so it works in WebGL.
    /// </summary>
    [AddComponentMenu("Gatehouse/Gatehouse Client")]
    public sealed class GatehouseClient : MonoBehaviour
    {
        private const float Timeout = 15; // seconds
        private const int FactorBytes = 32;
        private const double RenewBefore = 604800; // seconds: a week before its end, the JWT of a guest is renewed

        [SerializeField]
        [Tooltip("The address of the service. In WebGL, that of the page's own server, which forwards to it.")]
        private string baseUrl = "";

        [SerializeField]
        [Tooltip("The application that represents this game.")]
        private long appId;

        private readonly CancellationTokenSource destroyed = new CancellationTokenSource();
        private bool busy;

        /// <summary>Raised with the new state: waiting, opened, signing_in, confirmed, cancelled.</summary>
        public event Action<string> StateChanged;

        public string BaseUrl
        {
            get { return baseUrl; }
            set { baseUrl = value; }
        }

        public long AppId
        {
            get { return appId; }
            set { appId = value; }
        }

        /// <summary>Where factor, key and session are stored.</summary>
        public GatehouseStorage Storage { get; set; } = new GatehouseStorage();

        /// <summary>
        /// Signs in through the browser. Throws ArgumentException when BaseUrl is neither https nor on this machine, and
        /// InvalidOperationException while another sign-in is under way; all else is told by the outcome.
        /// </summary>
        public Task<GatehouseResult> SignInAsync(
            GatehouseOptions options = null, CancellationToken cancel = default(CancellationToken))
        {
            options = options ?? new GatehouseOptions();
            return OneAtATime(options, cancel, ended => WithBrowser(options, Registration(options), ended));
        }

        /// <summary>
        /// Signs in without an account, with a key that is made once on this device. The same key finds the same guest
        /// again.
        /// </summary>
        public Task<GatehouseResult> SignInGuestAsync(
            GatehouseOptions options = null, CancellationToken cancel = default(CancellationToken))
        {
            options = options ?? new GatehouseOptions();
            return OneAtATime(options, cancel, ended => SignInWithKey(options, ended));
        }

        /// <summary>Signs in with a ticket of the player's game platform, such as "steam".</summary>
        public Task<GatehouseResult> SignInPlatformAsync(
            string platform, string ticket, GatehouseOptions options = null,
            CancellationToken cancel = default(CancellationToken))
        {
            options = options ?? new GatehouseOptions();
            return OneAtATime(options, cancel, async ended =>
            {
                Dictionary<string, object> asked = Registration(options);
                asked["platform"] = platform;
                asked["ticket"] = ticket;
                return Results.FromLogin(await Post("/proxy/api/platformLogin", asked, ended));
            });
        }

        /// <summary>
        /// Continues a sign-in that was refused with the reason "second_factor", with its RequestId and the code that the
        /// player entered. With the method "email" and an empty code the service sends one.
        /// </summary>
        public Task<GatehouseResult> EnterCodeAsync(
            string requestId, string otp, GatehouseOptions options = null, string method = "",
            CancellationToken cancel = default(CancellationToken))
        {
            options = options ?? new GatehouseOptions();
            return OneAtATime(options, cancel, async ended =>
            {
                var asked = new Dictionary<string, object> { { "request_id", requestId } };
                if (otp != "")
                {
                    asked["otp"] = otp;
                }
                if (method != "")
                {
                    asked["method"] = method;
                }
                return Results.FromLogin(await Post("/proxy/api/login", asked, ended));
            });
        }

        /// <summary>
        /// Gives the guest of this device an account, through the browser: the player registers, or signs in to the account
        /// that gets everything the guest has. Show the code of the session, the player has to pick it. Refused with the
        /// reason login_error if this device has no guest.
        /// </summary>
        public Task<GatehouseResult> UpgradeAsync(
            GatehouseOptions options = null, CancellationToken cancel = default(CancellationToken))
        {
            options = options ?? new GatehouseOptions();
            return OneAtATime(options, cancel, ended => Upgrade(options, ended));
        }

        /// <summary>Whether this device has the key of a guest.</summary>
        public bool HasGuest()
        {
            return DeviceKey.Exists(Storage, CheckedBaseUrl());
        }

        /// <summary>
        /// Removes the key: the guest is lost, unless it has an account. The next sign-in as a guest makes a new one.
        /// </summary>
        public void ForgetGuest()
        {
            DeviceKey.Remove(Storage, CheckedBaseUrl());
        }

        /// <summary>
        /// The stored session, if the service still accepts it: call it when the game starts. The outcome is SignedOut when
        /// there is none or it has ended. A guest whose session has ended, or ends within a week, is signed in again with the
        /// key of the device.
        /// </summary>
        public async Task<GatehouseResult> ResumeAsync()
        {
            string stored = Storage.Read(CheckedBaseUrl(), "session");
            if (stored == "")
            {
                return Results.SignedOut();
            }
            bool isGuest = Json.Text(Json.Read(stored), "auth") == "guest" && HasGuest();
            if (isGuest && SecondsLeft(Results.SignedIn(stored).Jwt) < RenewBefore)
            {
                return await SignInGuestAsync();
            }
            Answer answer = await PostWithSession("/api/permissions/user/info", new Dictionary<string, object>());
            if (answer.Http == 200 && answer.Text("status") == "OK")
            {
                return Results.SignedIn(stored);
            }
            GatehouseResult result = NotAllowed(answer);
            return isGuest && result.Outcome == GatehouseOutcome.SignedOut ? await SignInGuestAsync() : result;
        }

        /// <summary>
        /// Forgets the session on this device. Its JWT is not revoked: the player does that with "Sign out everywhere" on
        /// the account page.
        /// </summary>
        public void SignOut()
        {
            Storage.Write(CheckedBaseUrl(), "session", "");
        }

        /// <summary>Asks for several permissions at once.</summary>
        public async Task<GatehousePermissions> CheckAsync(params string[] rules)
        {
            if (Storage.Read(CheckedBaseUrl(), "session") == "")
            {
                return Permissions(Results.SignedOut());
            }
            var checks = rules.Select(rule => new Dictionary<string, object> { { "rule", rule } }).ToList();
            var data = new Dictionary<string, object> { { "checks", checks } };
            var asked = new Dictionary<string, object> { { "application_id", appId }, { "data", data } };
            Answer answer = await PostWithSession("/api/permissions/check", asked);
            object found;
            var allowed = answer.Members.TryGetValue("data", out found) ? found as List<object> : null;
            if (answer.Http != 200 || allowed == null || allowed.Count != rules.Length)
            {
                return Permissions(NotAllowed(answer));
            }
            return new GatehousePermissions { Allowed = allowed.Select(value => value is bool && (bool)value).ToArray() };
        }

        /// <summary>
        /// Whether the player has this permission; also false if the service cannot tell. For what must be protected, ask
        /// on your game server: a modified game can claim anything.
        /// </summary>
        public async Task<bool> IsAllowedAsync(string rule)
        {
            GatehousePermissions permissions = await CheckAsync(rule);
            return permissions.Outcome == GatehouseOutcome.Ok && permissions.Allowed[0];
        }

        /// <summary>
        /// A random text that is generated once on each device. The JWT is bound to it; a game server asks for both.
        /// </summary>
        public string DeviceFactor()
        {
            string factor = Storage.Read(CheckedBaseUrl(), "factor");
            if (factor == "")
            {
                factor = string.Concat(DeviceKey.RandomBytes(FactorBytes).Select(one => one.ToString("x2")));
                Storage.Write(CheckedBaseUrl(), "factor", factor);
            }
            return factor;
        }

        private void OnDestroy()
        {
            destroyed.Cancel();
        }

        private async Task<GatehouseResult> OneAtATime(
            GatehouseOptions options, CancellationToken cancel, Func<CancellationToken, Task<GatehouseResult>> signIn)
        {
            CheckedBaseUrl();
            if (busy)
            {
                throw new InvalidOperationException("a sign-in is under way");
            }
            busy = true;
            try
            {
                using (var ended = CancellationTokenSource.CreateLinkedTokenSource(cancel, destroyed.Token))
                {
                    return StoreSession(await signIn(ended.Token), options);
                }
            }
            finally
            {
                busy = false;
            }
        }

        private GatehouseResult StoreSession(GatehouseResult result, GatehouseOptions options)
        {
            bool isSignedIn = result.Outcome == GatehouseOutcome.Ok && result.Jwt != "";
            if (isSignedIn && (options.Factor == null || options.Factor == DeviceFactor()))
            {
                Storage.Write(CheckedBaseUrl(), "session", result.Body);
            }
            return result;
        }

        private Task<GatehouseResult> WithBrowser(
            GatehouseOptions options, Dictionary<string, object> registration, CancellationToken ended)
        {
            Action<string> onState = state => StateChanged?.Invoke(state);
            return new BrowserSignIn(CheckedBaseUrl(), options, onState, ended).Run(registration);
        }

        private async Task<GatehouseResult> SignInWithKey(GatehouseOptions options, CancellationToken ended)
        {
            DeviceKey key = DeviceKey.Load(Storage, CheckedBaseUrl());
            var asked = new Dictionary<string, object> { { "app_id", appId }, { "device_key", key.PublicText } };
            Answer answer = await Post("/proxy/api/guest", asked, ended);
            for (int attempt = 0; attempt < 2 && answer.Text("challenge") != ""; attempt++) // there may be a puzzle
            {
                Dictionary<string, object> proved = Registration(options);
                key.Sign(answer.Text("challenge"), proved);
                object found;
                var puzzle = answer.Members.TryGetValue("puzzle", out found) ? found as Dictionary<string, object> : null;
                if (puzzle != null)
                {
                    proved["puzzle"] = Json.Text(puzzle, "puzzle");
                    proved["solution"] = await ProofOfWork.Solve(puzzle, ended);
                }
                answer = await Post("/proxy/api/guest", proved, ended);
            }
            return Results.FromLogin(answer);
        }

        private async Task<GatehouseResult> Upgrade(GatehouseOptions options, CancellationToken ended)
        {
            if (!HasGuest())
            {
                return new GatehouseResult { Outcome = GatehouseOutcome.Refused, Reason = "login_error" };
            }
            var asked = new Dictionary<string, object> { { "app_id", appId }, { "intent", "upgrade" } };
            Answer answer = await Post("/proxy/api/guest", asked, ended);
            if (answer.Text("challenge") == "")
            {
                return Results.FromLogin(answer);
            }
            Dictionary<string, object> registration = Registration(options);
            registration["intent"] = "upgrade";
            DeviceKey.Load(Storage, CheckedBaseUrl()).Sign(answer.Text("challenge"), registration);
            GatehouseResult result = await WithBrowser(options, registration, ended);
            if (result.Outcome == GatehouseOutcome.Ok)
            {
                ForgetGuest(); // the service has retired the key
            }
            return result;
        }

        private Task<Answer> Post(string path, object asked, CancellationToken ended)
        {
            return WebRequests.Post(CheckedBaseUrl() + path, asked, new Dictionary<string, string>(), Timeout, ended);
        }

        /// <summary>Until the JWT ends, by the clock of this device; the service decides.</summary>
        private static double SecondsLeft(string jwt)
        {
            string payload = jwt.Split('.').ElementAtOrDefault(1) ?? "";
            payload = payload.Replace('-', '+').Replace('_', '/') + new string('=', (4 - payload.Length % 4) % 4);
            try
            {
                long ends = Json.Whole(Json.Read(Encoding.UTF8.GetString(Convert.FromBase64String(payload))), "exp");
                return ends - (DateTime.UtcNow - new DateTime(1970, 1, 1)).TotalSeconds;
            }
            catch (FormatException)
            {
                return 0;
            }
        }

        private Dictionary<string, object> Registration(GatehouseOptions options)
        {
            var asked = new Dictionary<string, object> { { "app_id", appId } };
            string factor = options.Factor ?? DeviceFactor();
            if (factor != "")
            {
                asked["factor"] = factor;
            }
            if (options.Code)
            {
                asked["code"] = "1";
            }
            if (options.Qr)
            {
                asked["qr"] = "1";
            }
            foreach (KeyValuePair<string, string> field in options.More)
            {
                asked[field.Key] = field.Value;
            }
            return asked;
        }

        /// <summary>A request with the stored session.</summary>
        private Task<Answer> PostWithSession(string path, object asked)
        {
            string jwt = Results.SignedIn(Storage.Read(CheckedBaseUrl(), "session")).Jwt;
            var credentials = new Dictionary<string, string>
            {
                { "Authorization", "Bearer " + jwt },
                { "Factor", DeviceFactor() },
            };
            return WebRequests.Post(CheckedBaseUrl() + path, asked, credentials, Timeout, destroyed.Token);
        }

        /// <summary>What a permission endpoint said instead of OK. A session that it no longer accepts is forgotten.</summary>
        private GatehouseResult NotAllowed(Answer answer)
        {
            if (answer.Http == 401 || (answer.Http == 200 && answer.Text("error") == "invalid token"))
            {
                SignOut();
                return Results.SignedOut();
            }
            return answer.Http < 500 ? Results.FromError(answer) : Results.Unreachable(answer);
        }

        private static GatehousePermissions Permissions(GatehouseResult result)
        {
            return new GatehousePermissions
            {
                Outcome = result.Outcome,
                Error = result.Error,
                Reason = result.Reason,
                PublicText = result.PublicText,
                Until = result.Until,
            };
        }

        private string CheckedBaseUrl()
        {
            if (!Address.IsBase(baseUrl))
            {
                throw new ArgumentException("BaseUrl must be https, or http on this machine");
            }
            return baseUrl.TrimEnd('/');
        }
    }
}
