// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections.Generic;
using System.Linq;
using System.Security.Cryptography;
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

        [SerializeField]
        [Tooltip("The address of the service. In WebGL, that of the page's own server, which forwards to it.")]
        private string baseUrl = "";

        [SerializeField]
        [Tooltip("The application that represents this game.")]
        private long appId;

        private readonly CancellationTokenSource destroyed = new CancellationTokenSource();
        private bool busy;

        /// <summary>Hears of waiting, opened, signing_in, confirmed, cancelled.</summary>
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
        /// The stored session, if the service still accepts it: call it when the game starts. The outcome is SignedOut when
        /// there is none or it has ended.
        /// </summary>
        public async Task<GatehouseResult> ResumeAsync()
        {
            string stored = Storage.Read(CheckedBaseUrl(), "session");
            if (stored == "")
            {
                return Results.SignedOut();
            }
            Answer answer = await PostSigned("/api/permissions/user/info", new Dictionary<string, object>());
            return answer.Http == 200 && answer.Text("status") == "OK" ? Results.SignedIn(stored) : NotAllowed(answer);
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
            Answer answer = await PostSigned("/api/permissions/check", asked);
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
                factor = string.Concat(RandomBytes(FactorBytes).Select(one => one.ToString("x2")));
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
                    return Stored(await signIn(ended.Token), options);
                }
            }
            finally
            {
                busy = false;
            }
        }

        private GatehouseResult Stored(GatehouseResult result, GatehouseOptions options)
        {
            bool ofThisDevice = options.Factor == null || options.Factor == DeviceFactor();
            if (result.Outcome == GatehouseOutcome.Ok && result.Jwt != "" && ofThisDevice)
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
        private Task<Answer> PostSigned(string path, object asked)
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

        private static byte[] RandomBytes(int count)
        {
            var bytes = new byte[count];
            using (RandomNumberGenerator random = RandomNumberGenerator.Create())
            {
                random.GetBytes(bytes);
            }
            return bytes;
        }
    }
}
