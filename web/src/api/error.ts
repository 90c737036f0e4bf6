/** What went wrong, in words for the person at the screen. `code` is the server's, or `network` or `bad_answer`. */
export class ApiError extends Error {
  readonly code: string;
  readonly hint: string;
  readonly status: number;

  constructor(code: string, message: string, hint: string, status: number) {
    super(message);
    this.name = "ApiError";
    this.code = code;
    this.hint = hint;
    this.status = status;
  }
}
