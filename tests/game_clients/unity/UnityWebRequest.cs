// UnityWebRequest for tests without Unity, with HttpClient behind it.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Threading;
using System.Threading.Tasks;

namespace UnityEngine.Networking
{
    public class UploadHandlerRaw
    {
        internal readonly byte[] Data;

        public UploadHandlerRaw(byte[] data)
        {
            Data = data;
        }
    }

    public class DownloadHandlerScript
    {
        internal bool Receive(byte[] data)
        {
            return ReceiveData(data, data.Length);
        }

        protected virtual bool ReceiveData(byte[] data, int dataLength)
        {
            return true;
        }
    }

    public class UnityWebRequestAsyncOperation
    {
    }

    public class UnityWebRequest : IDisposable
    {
        public const string kHttpVerbPOST = "POST";

        private readonly HttpRequestMessage message;
        private readonly CancellationTokenSource abort = new CancellationTokenSource();
        private readonly Dictionary<string, string> headers = new Dictionary<string, string>();
        private HttpClient http;
        private Task<byte[]> sending;
        private HttpResponseMessage response;

        public UnityWebRequest(string url, string method)
        {
            message = new HttpRequestMessage(new HttpMethod(method), url);
        }

        public enum Result
        {
            InProgress,
            Success,
            ConnectionError,
            ProtocolError,
            DataProcessingError,
        }

        public UploadHandlerRaw uploadHandler { get; set; }
        public DownloadHandlerScript downloadHandler { get; set; }
        public int redirectLimit { get; set; } = 32;
        public Result result { get; private set; }
        public string error { get; private set; }

        public long responseCode
        {
            get { return response == null ? 0 : (long)response.StatusCode; }
        }

        public bool isDone
        {
            get
            {
                if (result == Result.InProgress && sending != null && sending.IsCompleted)
                {
                    Finish();
                }
                return result != Result.InProgress;
            }
        }

        public void SetRequestHeader(string name, string value)
        {
            headers[name] = value;
        }

        public string GetResponseHeader(string name)
        {
            IEnumerable<string> values;
            return response.Headers.TryGetValues(name, out values) ? values.First() : null;
        }

        public UnityWebRequestAsyncOperation SendWebRequest()
        {
            bool plain = message.RequestUri.Scheme == "http";
            http = new HttpClient(new HttpClientHandler { AllowAutoRedirect = redirectLimit > 0, UseProxy = !plain });
            http.Timeout = Timeout.InfiniteTimeSpan;
            http.DefaultRequestHeaders.ConnectionClose = true;
            message.Content = new ByteArrayContent(uploadHandler.Data);
            foreach (KeyValuePair<string, string> header in headers)
            {
                if (header.Key == "Content-Type")
                {
                    message.Content.Headers.ContentType = MediaTypeHeaderValue.Parse(header.Value);
                }
                else
                {
                    message.Headers.TryAddWithoutValidation(header.Key, header.Value);
                }
            }
            sending = Task.Run(() => Exchange());
            return new UnityWebRequestAsyncOperation();
        }

        public void Abort()
        {
            abort.Cancel();
            result = Result.ConnectionError;
            error = "Request aborted";
        }

        public void Dispose()
        {
            abort.Cancel();
            sending?.ContinueWith(ended => ended.Exception); // it is seen
            http?.Dispose();
        }

        private async Task<byte[]> Exchange()
        {
            response = await http.SendAsync(message, abort.Token);
            return await response.Content.ReadAsByteArrayAsync();
        }

        private void Finish()
        {
            int status = (int)responseCode;
            if (sending.Status != TaskStatus.RanToCompletion)
            {
                result = Result.ConnectionError;
                error = "Cannot connect to destination host";
            }
            else if (status >= 300 && status < 400)
            {
                result = Result.ConnectionError;
                error = "Redirect limit exceeded";
            }
            else if (!downloadHandler.Receive(sending.Result))
            {
                result = Result.DataProcessingError;
                error = "Failed to receive data";
            }
            else
            {
                result = status >= 400 ? Result.ProtocolError : Result.Success;
                error = status >= 400 ? "HTTP/1.1 " + status : null;
            }
        }
    }
}
